"""Trial of a game in a file: 16 random games before anything starts, compiled and in plain Python, move by move."""

import math
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from itertools import count
from random import Random
from types import CellType, FunctionType, ModuleType
from typing import Any

import numpy as np
from numba import typeof, uint64
from numba.core.dispatcher import Dispatcher
from numpy.typing import NDArray

from busso.base.own_files import PREFIX, OwnCodeError, OwnFile, fault, own_code, place_of, problem_of
from busso.cards.compiled import plain as plain_python
from busso.cards.compiled.batch import policy_loop, reward_loop
from busso.cards.compiled.bits import bit, put, put_thermometer
from busso.cards.compiled.plain import NUMBERS, PlainType, plain, plain_numpy
from busso.cards.game import Game, States
from busso.cards.own.game import default_rewards
from busso.cards.own.layout import Layout, ObservedBlock
from busso.cards.play import Actions, Decisions, play
from busso.cards.players import PolicyPlayer, RandomPlayer

_ALL_BITS = 2**64 - 1
_HINT = "compiled integers are unsigned 64-bit: write np.int64(x) before a difference, np.uint64(n) beside a mask"
RANDOM = "gives different results from one seed: all randomness must come from the seed"
GAMES, MOST_MOVES = 16, 10_000
MOST_PAID = 4.0  # per game, by the default reward
MOVES_COMPARED = 240  # in the trial
_SEEDS = np.arange(1, GAMES + 1, dtype=np.uint64)


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


class _Looking(RandomPlayer):
    """Random player that passes each batch of decisions to a check."""

    def __init__(self, look: Callable[[Decisions], None]) -> None:
        super().__init__()
        self._look = look

    def act(self, decisions: Decisions) -> Actions:
        """See Player."""
        self._look(decisions)
        return super().act(decisions)


class GameTrial:
    """Trial of one game in a file. Its methods raise OwnCodeError, one line, for a violation of the contract."""

    def __init__(self, game: Game, file: OwnFile) -> None:
        self._game, self._file = game, file

    def run(self) -> None:
        """Play random games."""
        self.compare(MOVES_COMPARED)
        start = self._dealt()
        seating = np.zeros((GAMES, self._game.seats), np.uint8)
        self._rounds = 0
        final, _ = play(self._game, _SEEDS, [_Looking(self._look)], seating, states=start.copy())
        self._look_at_end(final)
        used = final.copy()
        self._game.loops.deal(used, _SEEDS)
        kept = [name for name in self._game.dtype.names or () if not np.array_equal(used[name], start[name])]
        self._require(
            not kept, "deal", f"does not set {', '.join(kept)}, which then keeps its value from the game before"
        )
        for name, policy in self._game.policies.items():
            self._try_policy(name, policy, start, seating)

    # ------------------------------------------------------------------ errors

    def _place(self, name: str) -> str:
        rules = self._game.rules._asdict() | dict(self._game.policies) | dict(self._game.rewards)
        function = rules.get(name)
        for cell in getattr(getattr(function, "py_func", function), "__closure__", None) or ():
            function = cell.cell_contents  # `deal`, below what keeps the seed
        return self._file.line_of(function)

    def _require(self, holds: bool, function: str, problem: str) -> None:
        if not holds:
            raise OwnCodeError(self._place(function), f"{function}: {problem}")

    def _limit(self, rounds: int, function: str) -> None:
        self._require(rounds <= MOST_MOVES, function, f"a game has not ended after {MOST_MOVES:,} moves")

    @contextmanager
    def _asked(self, function: str) -> Iterator[None]:
        with own_code(self._file, function, self._place(function)):
            yield

    # ------------------------------------------------------------------ checks

    def _dealt(self) -> States:
        game = self._game
        states = np.full(GAMES, game.blank, game.dtype)
        game.loops.deal(states, _SEEDS)
        again = np.full(GAMES, game.blank, game.dtype)
        game.loops.deal(again, _SEEDS)
        self._require(np.array_equal(states, again), "deal", RANDOM)
        return states

    def compare(self, moves: int) -> PlainComparison:
        """Make random moves in plain Python and in compiled code, and compare the results.

        This compiles each function alone: an error in the compiled loops over all games names no function.
        """
        game, random, made = self._game, Random(0), 0
        both = PlainComparison(game, self._file, self._place)
        for seed in count(1):
            state = both.deal(seed)
            self._require(made > 0 or seed <= GAMES, "over", "the game is over as soon as it is dealt")
            while made < moves and not both.over(state):
                mask = both.legal(state)
                self._check_masks(np.array([mask], np.uint64))
                both.move(state, np.uint8(random.choice([each for each in range(game.actions) if mask >> each & 1])))
                made += 1
            if made == moves:
                break
            both.end(state)
        for name, reward in game.rewards.items():
            with self._asked(name):
                reward_loop(game.rules.apply, reward)
        return both

    def _check_masks(self, masks: NDArray[np.uint64]) -> None:
        self._require(bool(masks.all()), "legal", "no action is legal in a game that is not over")
        beyond = int(masks.max()) >> self._game.actions
        self._require(not beyond, "legal", f"an action beyond {self._game.actions} is legal")

    def _look(self, decisions: Decisions) -> None:
        game, states, running = self._game, decisions.states, decisions.games
        self._check_masks(decisions.legal)
        self._require(
            int(decisions.seats.max()) < game.seats, "apply", f"the turn is not at one of the {game.seats} seats"
        )
        self._rounds += 1
        self._limit(self._rounds, "over")
        for seat in range(game.seats):
            seen = game.observe(states, running, np.full(running.size, seat, np.uint8))
            unused = np.uint64(64 * game.words - game.bits)
            last = seen[:, -1] >> (np.uint64(64) - unused) if unused else np.zeros(1, np.uint64)
            self._require(not last.any(), "observe", f"sets a bit beyond the {game.bits} of the layout")
            if self._rounds == 1:
                self._look_for_hidden(seat, decisions, seen)

    def _look_for_hidden(self, seat: int, decisions: Decisions, seen: NDArray[np.uint64]) -> None:
        """Raise OwnCodeError if a block shows a seat the legal actions of another, in deals where these differ.

        Such a block is the other seat's hand.
        """
        game, masks = self._game, decisions.legal.tolist()
        if game.layout is None or game.open_cards or seat in decisions.seats or len(set(masks)) < 2:
            return
        for block in game.layout.blocks:
            shown = [sum(1 << each for each in block.set_bits(row)) for row in seen]
            problem = f"seat {seat} sees in `{block.name}` exactly what seat {decisions.seats[0]} may play"
            way_out = "hide these cards, or use game(..., open_cards=True)"
            self._require(shown != masks, "observe", f"{problem}; {way_out}")

    def _look_at_end(self, final: States) -> None:
        game = self._game
        self._require(not game.legal(final).any(), "legal", "an action is legal in a game that is over")
        returns = game.returns(final)
        self._require(bool(np.isfinite(returns).all()), "returns", "a result is not a number")
        sums = returns.sum(axis=1)
        if game.total is not None:
            wrong = sums[~np.isclose(sums, game.total)]
            self._require(
                not wrong.size, "returns", f"they add up to {wrong[:1].tolist()}, not to the total of {game.total:g}"
            )
        self._look_at_scale(final)
        for team in game.teams:
            same = bool((returns[:, list(team)] == returns[:, [team[0]]]).all())
            self._require(same, "returns", f"the seats {team} are a team, and their results differ")

    def _look_at_scale(self, final: States) -> None:
        """Raise OwnCodeError for a default reward far beyond -1 to 1, which suits the default learning rate."""
        reward, usual = self._game.rewards.get("result"), self._file.module.GAME.options
        if reward is None or reward.__module__ != default_rewards.__module__ or self._game.options != usual:
            return
        paid = np.zeros((GAMES, self._game.seats), np.float32)
        for state, totals in zip(final, paid, strict=True):
            reward(state, np.uint8(0), state, totals)
        most = float(np.abs(paid).max())
        problem = f"the default reward pays up to {most:g} per game, but rewards from -1 to 1 are learned best"
        self._require(most <= MOST_PAID, "returns", f"{problem}; set total= to the sum of the results, or set scale=")

    def _try_policy(self, name: str, policy: Callable[..., int], start: States, seating: NDArray[Any]) -> None:
        with self._asked(name):
            policy(start[0], np.uint64(1))
            policy_loop(policy)
        rounds = count(1)

        def watch(*_: Any) -> None:
            self._limit(next(rounds), name)

        try:
            play(self._game, _SEEDS, [PolicyPlayer(policy)], seating, watch=watch, states=start.copy())
        except ValueError as error:
            raise OwnCodeError(self._place(name), f"{name}: {error}") from None
