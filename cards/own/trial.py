"""Trial of a game in a file before anything starts: 16 random games, and single moves with checked indices."""

from collections.abc import Callable
from functools import partial
from itertools import count
from random import Random
from typing import Any

import numpy as np
from numpy.typing import NDArray

from busso.base.own_files import PREFIX, OwnCodeError, OwnFile, fault, own_code, place_of
from busso.cards.compiled import bits
from busso.cards.compiled.jit import Rebuilt, with_checked_indices
from busso.cards.compiled.plain import plain_function
from busso.cards.game import Game, States
from busso.cards.own.game import default_rewards
from busso.cards.own.layout import Layout, misfit
from busso.cards.play import Actions, Decisions, play
from busso.cards.players import RandomPlayer

RANDOM = "gives different results from one seed: all randomness must come from the seed"
UNSIGNED = "a difference of unsigned integers wraps: write np.int64(x) before it"
FRACTION = "returns a fraction in compiled code, where signed and unsigned meet; return np.uint64(0) instead of 0"
GAMES, MOST_MOVES = 16, 10_000
MOST_PAID = 4.0  # per game, by the default reward
_SEEDS = np.arange(1, GAMES + 1, dtype=np.uint64)
_EXACT = 53  # bits of a float64
_OURS = default_rewards.__module__  # with rewards that need no check


def _rebuilt(make: Callable[..., Any], layout: Layout, packages: tuple[str, ...]) -> Rebuilt:
    """Return functions in which `put` and `put_thermometer` raise BlockError for what exceeds its block."""
    rebuilt = Rebuilt(make, (PREFIX, "busso.cards.own", *packages))
    ends = np.array([block.offset + block.bits for block in layout.blocks for _ in range(block.bits)])
    rebuilt.keep(bits.lowest, bits.highest, bits.popcount)  # instructions, which plain Python lacks
    rebuilt.replace(bits.put, partial(bits.put_within, ends))
    rebuilt.replace(bits.put_thermometer, partial(bits.thermometer_within, ends))
    return rebuilt


class _Looking(RandomPlayer):
    """Random player that passes each batch of decisions to a check."""

    def __init__(self, look: Callable[[Decisions], None]) -> None:
        super().__init__()
        self._look = look

    def act(self, decisions: Decisions) -> Actions:
        """See Player."""
        self._look(decisions)
        return super().act(decisions)


def _run(given: tuple[Any, ...], changes: int | None, function: Any) -> Any:
    """Call a function with copies of the arrays, and the one record of those that are states."""
    own = [each.copy() if isinstance(each, np.ndarray) else each for each in given]
    result = function(*(each[0] if each.dtype.names else each for each in own))
    return result if changes is None else own[changes]


def _bytes(found: Any) -> bytes:
    names = getattr(found, "dtype", np.dtype(int)).names  # between fields are bytes that a copy does not keep
    return b"".join(_bytes(found[name]) for name in names) if names else np.asarray(found).tobytes()


class GameTrial:
    """Trial of one game in a file. Its methods raise OwnCodeError, one line, for a violation of the contract."""

    def __init__(self, game: Game, file: OwnFile) -> None:
        self._game, self._file = game, file
        self.most_paid: float | None = None  # per game, by the default reward, if it is to be divided
        self._layout = game.layout or Layout(observation=game.bits)
        self._checked = _rebuilt(with_checked_indices, self._layout, ("busso.cards.compiled.tricks",))
        self._plain = _rebuilt(lambda _, function: plain_function(function), self._layout, ("busso.cards.compiled",))

    def run(self) -> None:
        """Play random games, and games of each policy."""
        self.check_moves()
        start, seating = self._game.deal(_SEEDS), np.zeros((GAMES, self._game.seats), np.uint8)
        self._require(np.array_equal(start, self._game.deal(_SEEDS)), "deal", RANDOM)
        self._rounds = 0
        final, _ = play(self._game, _SEEDS, [_Looking(self._look)], seating, states=start.copy())
        self._look_at_end(final)
        self._game.loops.deal(final, _SEEDS)
        kept = [name for name in self._game.dtype.names or () if not np.array_equal(final[name], start[name])]
        problem = f"does not set {', '.join(kept)}, which then keeps its value from the game before"
        self._require(not kept, "deal", problem)
        for name in self._game.policies:
            self.check_moves(policy=name)

    def _place(self, name: str) -> str:
        function = {**self._game.rules._asdict(), **self._game.policies, **self._game.rewards}.get(name)
        for cell in getattr(getattr(function, "py_func", function), "__closure__", None) or ():
            function = cell.cell_contents  # `deal`, below what keeps the seed
        return self._file.line_of(function)

    def _require(self, holds: bool, function: str, problem: str) -> None:
        if not holds:
            raise OwnCodeError(self._place(function), f"{function}: {problem}")

    def _fault(self, name: str, error: OwnCodeError, plain: Callable[[], Any]) -> OwnCodeError:
        """Explain an error in a compiled function; plain Python finds the line, which compiled code does not know."""
        cause, place, fields = error.__cause__, error.key, self._game.dtype.names or ()
        if isinstance(cause, KeyError) and cause.args[0] not in fields:  # Numba's for a field
            return OwnCodeError(place, f"{name}: STATE has no field {cause.args[0]!r}; it has {', '.join(fields)}")
        if not isinstance(cause, IndexError | bits.BlockError):
            return error
        beyond = isinstance(cause, bits.BlockError)
        problem = f"{name}: {misfit(self._layout, *cause.args)}" if beyond else error.problem
        try:
            plain()
            problem += f"; {UNSIGNED}"
        except IndexError as found:  # which has the index
            return fault(found, name, place)
        except bits.BlockError as found:
            place = place_of(found) or place
        except Exception:  # plain Python cannot follow
            pass
        return OwnCodeError(place, problem)

    # ------------------------------------------------------------------ single moves

    def check_moves(self, moves: int = 240, policy: str | None = None) -> None:
        """Make moves, random or of a policy, at least those of one game, with functions that check indices and blocks.

        This compiles each function alone: an error in the compiled loops over all games names no function.
        """
        game, random, made = self._game, Random(0), 0
        for seed in count(1):
            state = self._called("deal", game.rules.deal, np.full(1, game.blank), np.uint64(seed), changes=0)
            for rounds in count(0):
                if self._called("over", game.rules.over, state):
                    break
                self._limit(rounds, policy or "over")
                legal, random_bits = self._legal(state), np.uint64(random.getrandbits(64))
                chosen = {name: self._decision(name, state, legal, random_bits) for name in game.policies}
                action = chosen[policy] if policy else random.choice(legal)
                state = self._moved(state, np.uint8(action))
            made += rounds
            self._require(made > 0 or seed < GAMES, "over", "the game is over as soon as it is dealt")
            self._check_results(state)
            if made >= moves:
                break

    def _limit(self, rounds: int, function: str) -> None:
        self._require(rounds < MOST_MOVES, function, f"a game has not ended after {MOST_MOVES:,} moves")

    def _decision(self, policy: str, state: States, legal: list[int], random_bits: np.uint64) -> int:
        action = int(self._called(policy, self._game.policies[policy], state, random_bits))
        self._require(action in legal, policy, f"chooses the action {action}; legal: {legal}")
        return action

    def _legal(self, state: States) -> list[int]:
        mask = self._called("legal", self._game.rules.legal, state)
        exact = not isinstance(mask, float) or (self._game.actions <= _EXACT and mask.is_integer())
        self._require(exact, "legal", FRACTION)
        mask = int(mask) % 2**64  # -1 has 64 bits, too
        self._check_masks(np.array([mask], np.uint64))
        return [action for action in range(self._game.actions) if mask >> action & 1]

    def _moved(self, state: States, action: np.uint8) -> States:
        """Return the state after a move; observations of all seats and rewards are called, too."""
        game, words = self._game, np.zeros(self._game.words, np.uint64)
        for seat in range(game.seats):
            self._called("observe", game.rules.observe, state, np.uint8(seat), words, changes=2)
        after: States = self._called("apply", game.rules.apply, state, action, changes=0)
        for name, reward in game.rewards.items():
            if reward.__module__ != _OURS:
                self._called(name, reward, state, action, after, np.zeros(game.seats, np.float32), changes=3)
        return after

    def _check_results(self, state: States) -> None:
        game, unset = self._game, np.full(self._game.seats, np.nan, np.float32)
        taken = int(state[game.seats_taken][0]) if game.seats_taken else game.seats
        self._require(0 < taken <= game.seats, "deal", f"{game.seats_taken} is {taken}, of {game.seats} seats")
        for seat, result in enumerate(self._called("returns", game.rules.returns, state, unset, changes=1)):
            problem = f"the result of seat {seat} is not set, or not a number"
            self._require(not np.isnan(result), "returns", f"{problem}; set out[seat] for each seat")

    def _called(self, name: str, function: Any, *given: Any, changes: int | None = None) -> Any:
        """Return the result of a function with checked indices, the same twice, or the argument that it changes."""
        run, checked = partial(_run, given, changes), self._checked.of(function)
        try:
            with own_code(self._file, name, self._place(name)):
                found, again = run(checked), run(checked)
        except OwnCodeError as error:
            raise self._fault(name, error, partial(run, self._plain.of(function))) from error.__cause__
        self._require(_bytes(found) == _bytes(again), name, RANDOM)
        return found

    # ------------------------------------------------------------------ checks

    def _check_masks(self, masks: NDArray[np.uint64]) -> None:
        self._require(bool(masks.all()), "legal", "no action is legal in a game that is not over")
        beyond = int(masks.max()) >> self._game.actions
        self._require(not beyond, "legal", f"an action beyond {self._game.actions} is legal")

    def _look(self, decisions: Decisions) -> None:
        game, states, running = self._game, decisions.states, decisions.games
        self._check_masks(decisions.legal)
        at_table = int(decisions.seats.max()) < game.seats
        self._require(at_table, "apply", f"the turn is not at one of the {game.seats} seats")
        self._limit(self._rounds, "over")
        self._rounds += 1
        for seat in range(game.seats):
            seen = game.observe(states, running, np.full(running.size, seat, np.uint8))
            beyond = int(seen[:, -1].max()) >> (game.bits - 64 * (game.words - 1))
            self._require(not beyond, "observe", f"sets a bit beyond the {game.bits} of the layout")
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
            wrong = sums[~np.isclose(sums, game.total)][:1].tolist()
            self._require(not wrong, "returns", f"they add up to {wrong}, not to the total of {game.total:g}")
        self._look_at_scale(final)
        for team in game.teams:
            same = bool((returns[:, list(team)] == returns[:, [team[0]]]).all())
            self._require(same, "returns", f"the seats {team} are a team, and their results differ")

    def _look_at_scale(self, final: States) -> None:
        """Keep in `most_paid` how much the default reward pays in a game, if that is far beyond -1 to 1."""
        reward = self._game.rewards.get("result")
        if reward is None or reward.__module__ != _OURS or self._game.options != self._file.module.GAME.options:
            return
        paid = np.zeros((GAMES, self._game.seats), np.float32)
        for state, totals in zip(final, paid, strict=True):
            reward(state, np.uint8(0), state, totals)
        most = float(np.abs(paid).max())
        self.most_paid = float(f"{most:.4g}") if most > MOST_PAID else None
