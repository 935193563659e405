"""The compiled functions of a game in one file beside the same functions in plain Python.

Compiled code wraps unsigned differences, reads and writes past the ends of arrays, and lets a value run into the next
block of an observation, all without an error. Plain Python has an error or another result there.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from types import CellType, FunctionType
from typing import Any

import numpy as np
from numba.core.dispatcher import Dispatcher
from numpy.typing import NDArray

from busso.cards.base.own_files import PREFIX, OwnCodeError, fault, place_of
from busso.cards.compiled.bits import bit, put, put_thermometer
from busso.cards.compiled.plain import plain
from busso.cards.game import Game
from busso.cards.own.layout import Layout, ObservedBlock

_ALL_BITS = 2**64 - 1
_HINT = "compiled integers are unsigned 64-bit: convert with np.int64(x) before subtracting"


def is_own(function: Any) -> bool:
    """Return whether a compiled function is defined in a named file."""
    return isinstance(function, Dispatcher) and f"{function.py_func.__module__}.".startswith(f"{PREFIX}.")


class Twins:
    """The plain twins of a file's compiled functions, with all that these call in the file.

    An overflow of NumPy's is an error there: the result says nothing about compiled code, which has wider integers.
    """

    def __init__(self, layout: Layout | None) -> None:
        self._made: dict[Dispatcher, Callable[..., Any]] = {}
        self._names: dict[int, dict[str, Any]] = {}  # the names of each module, by its dictionary
        self._special = {put: self._put, put_thermometer: self._put_thermometer}
        self._blocks: tuple[ObservedBlock, ...] = layout.blocks if layout is not None else ()

    def of(self, function: Any) -> Callable[..., Any]:
        """Return the twin of a compiled function of the file."""
        if function not in self._made:
            self._made[function] = self._plain(function.py_func)
        return self._made[function]

    def _plain(self, function: FunctionType) -> Callable[..., Any]:
        cells = tuple(CellType(self._value(cell.cell_contents)) for cell in function.__closure__ or ())
        names = self._names_of(function.__globals__)
        twin = FunctionType(function.__code__, names, function.__name__, function.__defaults__, cells)

        def call(*given: Any, **named: Any) -> Any:
            with np.errstate(over="raise"):
                return plain(twin(*map(plain, given), **{name: plain(value) for name, value in named.items()}))

        return call

    def _names_of(self, known: dict[str, Any]) -> dict[str, Any]:
        if id(known) not in self._names:
            names = self._names[id(known)] = dict(known)
            names.update({name: self._value(value) for name, value in known.items()})
        return self._names[id(known)]

    def _value(self, value: Any) -> Any:
        if not isinstance(value, Dispatcher):
            return plain(value)
        if is_own(value):
            return self.of(value)
        return self._special.get(value) or (lambda *given: plain(value(*map(_as_array, given))))

    def _put(self, words: NDArray[np.uint64], offset: int, value: Any) -> None:
        """`put`, with an error for bits outside the block where it begins."""
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


def _as_array(value: Any) -> Any:
    return np.asarray(value) if isinstance(value, np.ndarray) else value


class PlainComparison:
    """Games whose every move is made by the compiled functions and by their twins. `place` names a function's line."""

    def __init__(self, game: Game, place: Callable[[str], str]) -> None:
        self._game, self._place = game, place
        self._twins = Twins(game.layout)

    def move(self, state: NDArray[Any], action: np.uint8) -> None:
        """Make a move in `state[0]`. Raises OwnCodeError for what differs or is an error in plain Python."""
        game, rules = self._game, self._game.rules
        self._same("over", rules.over, lambda over: bool(over(state[0])))
        self._same("legal", rules.legal, lambda legal: int(legal(state[0])) & _ALL_BITS)  # -1 has 64 bits, too
        for seat in range(game.seats):
            self._same("observe", rules.observe, partial(self._observed, state, seat))
        before = state.copy()
        done = f"after the action {game.action_text(int(action))}, "
        self._same("apply", rules.apply, lambda apply: self._applied(apply, before, action), done)
        rules.apply(state[0], action)
        for name, reward in game.rewards.items():
            self._same(name, reward, lambda reward: self._paid(reward, before, action, state))

    def end(self, state: NDArray[Any]) -> None:
        """The same of an ended game's results, and they are of all seats."""
        self._same("returns", self._game.rules.returns, lambda returns: self._returned(returns, state))
        for seat, result in enumerate(self._returned(self._game.rules.returns, state)):
            if math.isnan(result):
                problem = f"the result of seat {seat} is not set, or not a number"
                raise OwnCodeError(self._place("returns"), f"returns: {problem}; set out[seat] for each seat")

    def _same(self, name: str, function: Any, run: Callable[[Any], Any], when: str = "") -> None:
        if not is_own(function):
            return
        try:
            expected = run(self._twins.of(function))  # first: the compiled one may write past an array
        except (IndexError, OwnCodeError) as error:
            raise self._fault(name, error) from error
        except Exception:
            expected = None  # NumPy's scalars are not Numba's
        found = run(function)
        if expected is not None and (different := _difference(found, expected)):
            raise OwnCodeError(self._place(name), f"{name}: {when}{different}; {_HINT}")

    def _fault(self, name: str, error: Exception) -> OwnCodeError:
        if isinstance(error, OwnCodeError):
            return OwnCodeError(place_of(error) or self._place(name), f"{name}: {error.problem}")
        return fault(error, name, self._place(name))

    def _observed(self, state: NDArray[Any], seat: int, observe: Any) -> list[int]:
        words = np.zeros(self._game.words, np.uint64)
        observe(state[0], np.uint8(seat), words)
        return [int(word) for word in words]

    def _applied(self, apply: Any, before: NDArray[Any], action: np.uint8) -> dict[str, Any]:
        after = before.copy()
        apply(after[0], action)
        return {f"`{name}`": after[name][0].tolist() for name in after.dtype.names or ()}

    def _paid(self, reward: Any, before: NDArray[Any], action: np.uint8, after: NDArray[Any]) -> list[float]:
        totals = np.zeros(self._game.seats, np.float32)
        reward(before[0], action, after[0], totals)
        return [float(each) for each in totals]

    def _returned(self, returns: Any, state: NDArray[Any]) -> list[float]:
        out = np.full(self._game.seats, np.nan, np.float32)
        returns(state[0], out)
        return [float(each) for each in out]


def _difference(found: Any, expected: Any) -> str:
    """Describe what differs; empty if nothing does but the last digits of a fraction."""
    if isinstance(found, dict):
        return next((f"{key} {said}" for key in found if (said := _difference(found[key], expected[key]))), "")
    fractions = _has_fractions(found)
    same = np.allclose(found, expected, rtol=1e-4, atol=1e-6, equal_nan=True) if fractions else found == expected
    return "" if same else f"is {found} in compiled code and {expected} in plain Python"


def _has_fractions(value: Any) -> bool:
    return isinstance(value, float) or (isinstance(value, list) and any(map(_has_fractions, value)))
