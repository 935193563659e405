"""Trial of a game in a file: 16 random games before anything starts, with errors that name the function."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from random import Random
from typing import Any

import numpy as np
from numpy.typing import NDArray

from busso.cards.base.own_files import OwnCodeError, OwnFile, own_code
from busso.cards.compiled.batch import policy_loop, reward_loop
from busso.cards.game import Game, States
from busso.cards.own.rewards import default_rewards
from busso.cards.own.twins import RANDOM, PlainComparison
from busso.cards.play import Actions, Decisions, play
from busso.cards.players import PolicyPlayer, RandomPlayer

GAMES, MOST_MOVES = 16, 10_000
MOST_PAID = 4.0  # per game, by the default reward
MOVES_COMPARED = 240  # in the trial
_SEEDS = np.arange(1, GAMES + 1, dtype=np.uint64)


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
