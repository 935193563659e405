"""The functions of a game in one file, compiled and in plain Python, move by move.

Compiled code wraps unsigned differences, accesses memory past the end of an array, and lets a value run into the next
block of an observation, all without an error. Plain Python raises an error or computes something else. Each function
runs in plain Python first, since compiled code that writes past an array may kill the process.
"""

import math
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from random import Random
from types import CellType, FunctionType, ModuleType
from typing import Any

import numpy as np
from numba import typeof, uint64
from numba.core.dispatcher import Dispatcher
from numpy.typing import NDArray

from busso.cards.base.own_files import PREFIX, OwnCodeError, OwnFile, fault, own_code, place_of
from busso.cards.base.problems import problem_of
from busso.cards.compiled import plain as plain_python
from busso.cards.compiled.bits import bit, put, put_thermometer
from busso.cards.compiled.plain import NUMBERS, PlainType, plain, plain_numpy
from busso.cards.game import Game
from busso.cards.own.layout import Layout, ObservedBlock

_ALL_BITS = 2**64 - 1
_HINT = "compiled integers are unsigned 64-bit: write np.int64(x) before a difference, np.uint64(n) beside a mask"
RANDOM = "gives different results from one seed: all randomness must come from the seed"


def is_own(function: Any) -> bool:
    """Return whether a compiled function is defined in a named file, or has a closure over such a function."""
    if not isinstance(function, Dispatcher):
        return False
    cells = function.py_func.__closure__ or ()
    return f"{function.py_func.__module__}.".startswith(f"{PREFIX}.") or any(
        is_own(each.cell_contents) for each in cells
    )


class Twins:
    """Plain-Python twins of the compiled functions in a file, which call each other's twins."""

    def __init__(self, layout: Layout | None) -> None:
        self._made: dict[Dispatcher, Callable[..., Any]] = {}
        self._names: dict[int, dict[str, Any]] = {}  # of each module, by the id of its dictionary
        self._numpy = plain_numpy()
        self._special = {put: self._put, put_thermometer: self._put_thermometer}
        self._blocks: tuple[ObservedBlock, ...] = layout.blocks if layout is not None else ()

    def of(self, function: Any) -> Callable[..., Any]:
        """Return the twin of a compiled function in the file."""
        if function not in self._made:
            self._made[function] = self._plain(function.py_func)
        return self._made[function]

    def _plain(self, function: FunctionType) -> Callable[..., Any]:
        cells = tuple(CellType(self._value(cell.cell_contents)) for cell in function.__closure__ or ())
        names = self._names_of(function.__globals__)
        twin = FunctionType(function.__code__, names, function.__name__, function.__defaults__, cells)

        def call(*given: Any, **named: Any) -> Any:
            return plain(twin(*map(plain, given), **{name: plain(value) for name, value in named.items()}))

        return call

    def _names_of(self, known: dict[str, Any]) -> dict[str, Any]:
        if id(known) not in self._names:
            names = self._names[id(known)] = dict(known)
            names.update({name: self._value(value) for name, value in known.items()})
        return self._names[id(known)]

    def _value(self, value: Any) -> Any:
        if value is np:
            return self._numpy
        if isinstance(value, type) and value in NUMBERS:
            return PlainType(value)
        if isinstance(value, ModuleType) and value.__name__.startswith((PREFIX, "busso.")):
            twin = ModuleType(value.__name__)
            twin.__dict__.update(self._names_of(value.__dict__))
            return twin
        if not isinstance(value, Dispatcher):
            return plain(value)
        if is_own(value):
            return self.of(value)
        return self._special.get(value) or partial(_compiled, value)

    def _put(self, words: NDArray[np.uint64], offset: int, value: Any) -> None:
        """Do as `put`; raises OwnCodeError for bits beyond the block in which they begin."""
        block = self._block_at(offset)
        if int(value) >> (block.offset + block.bits - int(offset)):
            place = int(value).bit_length() - 1 + int(offset) - block.offset
            raise OwnCodeError("", f"bit {place} is set in the block `{block.name}`, which has {block.bits}")
        put(_as_array(words), int(offset), np.uint64(value))

    def _put_thermometer(self, words: NDArray[np.uint64], offset: int, value: Any) -> None:
        block = self._block_at(offset)
        if not 0 <= value <= (most := block.offset + block.bits - int(offset)):
            raise OwnCodeError("", f"{int(value)} is written to the block `{block.name}`, which holds 0 to {most}")
        self._put(words, offset, int(bit(int(value))) - 1)

    def _block_at(self, offset: int) -> ObservedBlock:
        for block in self._blocks:
            if block.offset <= offset < block.offset + block.bits:
                return block
        raise OwnCodeError("", f"{int(offset)} is not the offset of a block of the layout")


def _compiled(function: Any, *given: Any) -> Any:
    """Call a compiled function of busso, which returns an unsigned integer as a Python integer."""
    arguments = [_as_array(value) for value in given]
    found = function(*arguments)
    unsigned = function.overloads[tuple(map(typeof, arguments))].signature.return_type == uint64
    return np.uint64(found) if unsigned else plain(found)


def _as_array(value: Any) -> Any:
    return np.asarray(value) if isinstance(value, np.ndarray) else value


class PlainComparison:
    """Functions of a game that run in plain Python, then in compiled code, with compared results.

    `place` returns the file and line of a function by its name. `compared` counts the compared calls by function,
    `unable` has the reason for functions that plain Python cannot follow. Methods raise OwnCodeError for a difference,
    an access past the end of an array, and code that cannot be compiled.
    """

    def __init__(self, game: Game, file: OwnFile, place: Callable[[str], str]) -> None:
        self._game, self._file, self._place = game, file, place
        self._twins = Twins(game.layout)
        self._random = Random(0)
        self.compared: Counter[str] = Counter()
        self.unable: dict[str, str] = {}

    def deal(self, seed: int) -> NDArray[Any]:
        """Deal a game, `state[0]`."""
        state, deal = np.full(1, self._game.blank, self._game.dtype), self._game.rules.deal
        self._same("deal", deal, lambda deal: self._changed(state, lambda new: deal(new, np.uint64(seed))))
        deal(state[0], np.uint64(seed))
        return state

    def over(self, state: NDArray[Any]) -> bool:
        """Return whether the game has ended."""
        return bool(self._same("over", self._game.rules.over, lambda over: bool(over(state[0]))))

    def legal(self, state: NDArray[Any]) -> int:
        """Return the mask of legal actions."""
        mask = self._same("legal", self._game.rules.legal, lambda legal: _mask(legal(state[0])))
        if isinstance(mask, float):
            problem = "returns a fraction in compiled code, where signed integers mix with unsigned masks"
            raise OwnCodeError(self._place("legal"), f"legal: {problem}; return np.uint64(0) instead of 0")
        return int(mask)

    def move(self, state: NDArray[Any], action: np.uint8) -> None:
        """Make a move in `state[0]`; observations of all seats, policies and rewards are compared, too."""
        game, rules, bits = self._game, self._game.rules, np.uint64(self._random.getrandbits(64))
        for seat in range(game.seats):
            self._same("observe", rules.observe, partial(self._observed, state, seat))
        for name, policy in game.policies.items():
            self._same(name, policy, lambda policy: int(policy(state[0], bits)))
        before = state.copy()
        done = f"after the action {game.action_text(int(action))}, "
        self._same("apply", rules.apply, lambda apply: self._changed(before, lambda new: apply(new, action)), done)
        rules.apply(state[0], action)
        for name, reward in game.rewards.items():
            self._same(name, reward, lambda reward: self._paid(reward, before, action, state))

    def end(self, state: NDArray[Any]) -> None:
        """Check the results of an ended game: every seat has one."""
        results = self._same("returns", self._game.rules.returns, lambda returns: self._returned(returns, state))
        for seat, result in enumerate(results):
            if math.isnan(result):
                problem = f"the result of seat {seat} is not set, or not a number"
                raise OwnCodeError(self._place("returns"), f"returns: {problem}; set out[seat] for each seat")

    def _same(self, name: str, function: Any, run: Callable[[Any], Any], when: str = "") -> Any:
        """Return the result of the compiled function after a comparison with its twin."""
        if not is_own(function):
            return run(function)
        twin = partial(run, self._twins.of(function))
        expected, wrapped = self._expected(name, twin)
        found = self._found(name, function, run)
        if expected is None:
            return found
        different = _difference(found, expected)
        if different and not wrapped and not self._is_meant(twin, found):
            if _difference(self._expected(name, twin)[0], expected):
                raise OwnCodeError(self._place(name), f"{name}: {RANDOM}")
            raise OwnCodeError(self._place(name), f"{name}: {when}{different}; {_HINT}")
        if different and wrapped:
            self.unable[name] = "integers overflow in it"
        else:
            self.compared[name] += 1
        return found

    def _found(self, name: str, function: Any, run: Callable[[Any], Any]) -> Any:
        """Return the result of the compiled function."""
        fields = self._game.dtype.names or ()
        try:
            with own_code(self._file, name, self._place(name)):
                return run(function)
        except OwnCodeError as error:
            cause = error.__cause__
            if not isinstance(cause, KeyError) or cause.args[0] in fields:  # Numba's for a field
                raise
            problem = f"{name}: STATE has no field {cause.args[0]!r}; it has {', '.join(fields)}"
            raise OwnCodeError(error.key, problem) from cause

    def _expected(self, name: str, twin: Callable[[], Any]) -> tuple[Any, bool]:
        """Return the twin's result, None if plain Python cannot follow, and whether an unsigned integer wrapped."""
        try:
            with np.errstate(over="raise"):
                return twin(), False
        except FloatingPointError:
            with np.errstate(over="ignore"), suppress(Exception):
                return twin(), True
        except (IndexError, OwnCodeError) as error:
            raise self._fault(name, error) from error
        except Exception as error:  # NumPy's scalars differ from Numba's
            self.unable[name] = problem_of(error)
        return None, False

    def _is_meant(self, twin: Callable[[], Any], found: Any) -> bool:
        """Return whether the twin computes `found` with wrapping integers and 32-bit fractions, which is no error."""
        with suppress(Exception), np.errstate(over="ignore"), plain_python.as_numpy():
            return not _difference(found, twin())
        return False

    def _fault(self, name: str, error: Exception) -> OwnCodeError:
        if isinstance(error, OwnCodeError):
            return OwnCodeError(place_of(error) or self._place(name), f"{name}: {error.problem}")
        return fault(error, name, self._place(name))

    def _observed(self, state: NDArray[Any], seat: int, observe: Any) -> list[int]:
        words = np.zeros(self._game.words, np.uint64)
        observe(state[0], np.uint8(seat), words)
        return [int(word) for word in words]

    def _changed(self, before: NDArray[Any], change: Callable[[Any], None]) -> dict[str, Any]:
        after = before.copy()
        change(after[0])
        return {f"`{name}`": _listed(after[name][0]) for name in after.dtype.names or ()}

    def _paid(self, reward: Any, before: NDArray[Any], action: np.uint8, after: NDArray[Any]) -> list[float]:
        totals = np.zeros(self._game.seats, np.float32)
        reward(before[0], action, after[0], totals)
        return [float(each) for each in totals]

    def _returned(self, returns: Any, state: NDArray[Any]) -> list[float]:
        out = np.full(self._game.seats, np.nan, np.float32)
        returns(state[0], out)
        return [float(each) for each in out]


def _mask(value: Any) -> float | int:
    return value if isinstance(value, float) else int(value) & _ALL_BITS  # -1 has 64 bits, too


def _listed(value: Any) -> Any:
    """Convert arrays and records, also inside each other, to lists."""
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    return list(map(_listed, value)) if isinstance(value, list | tuple) else value


def _difference(found: Any, expected: Any) -> str:
    """Describe the first difference; empty for equal results, up to rounding of fractions."""
    if isinstance(found, dict):
        return next((f"{key} {said}" for key in found if (said := _difference(found[key], expected[key]))), "")
    fractions = _has_fractions(found)
    same = np.allclose(found, expected, rtol=1e-4, atol=1e-6, equal_nan=True) if fractions else found == expected
    return "" if same else f"is {found} in compiled code and {expected} in plain Python"


def _has_fractions(value: Any) -> bool:
    return isinstance(value, float) or (isinstance(value, list) and any(map(_has_fractions, value)))
