"""What each action is worth, for somebody who asks: from what the seat may know alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from cards.game import Game, States
from cards.mdp import END
from cards.play import Decisions, Player
from cards.splitmix import derive
from command.checks import SettingsError
from play.hand import Hand, Move
from play.players import seated_player

if TYPE_CHECKING:
    from evaluate.solution import Solved

_HINTS, _ODDS = 0x68696E74 << 16, 0x6F646473 << 16  # salts, by the number of the move
_SAMPLES_OF_ODDS = 2000
DEFAULTS = {"tressette": "monte_carlo:samples=400", "spike": "monte_carlo:samples=1000"}
EXACT = "exact"
_THE_ONE = np.zeros(1, np.int64)


@dataclass(frozen=True)
class Worth:
    """What an action is worth to the seat that takes it, in the unit of the adviser; None where that is not known."""

    action: int
    value: float | None


@dataclass(frozen=True)
class Odds:
    """How likely each of the named outcomes is; for one action, or from here on when `action` is None."""

    action: int | None
    chances: dict[str, float]


class Adviser(Protocol):
    """Knows what actions are worth. `unit` is a key of the texts, after `unit.`."""

    unit: str

    def values(self, game: Game, state: States, generator: NDArray[np.uint64]) -> NDArray[np.float64]:
        """What each action is worth in the state `[1]`, `[actions]`; NaN for those not legal or not looked at."""


class _Sampler:
    """A player that tries its actions and says what it found: `action_values` of `monte_carlo`."""

    def __init__(self, player: Any, unit: str) -> None:
        self._player, self.unit = player, unit

    def values(self, game: Game, state: States, generator: NDArray[np.uint64]) -> NDArray[np.float64]:
        """See `Adviser`."""
        self._player.begin(generator)
        found: NDArray[np.float64] = self._player.action_values(Decisions(game, state, _THE_ONE))[0]
        return found


class _Search:
    """`search(RUN)`, whose values from -1 to 1 are differences of points over 11, or who wins."""

    def __init__(self, player: Any, counts_wins: bool) -> None:
        self._player, self._counts_wins = player, counts_wins
        self.unit = "wins" if counts_wins else "points"

    def values(self, game: Game, state: States, generator: NDArray[np.uint64]) -> NDArray[np.float64]:
        """See `Adviser`."""
        from tressette.rules import POINTS

        self._player.begin(generator)
        found = self._player.card_values(Decisions(game, state, _THE_ONE))[0]
        found[np.isneginf(found)] = np.nan
        scaled: NDArray[np.float64] = found if self._counts_wins else (found + 1) / 2 * POINTS
        return scaled


def adviser_of(game: Game, player: Any) -> Adviser | None:
    """What a player that tries its actions finds them worth; None for one that does not say."""
    if hasattr(player, "action_values"):
        return _Sampler(player, game.unit)
    return _Search(player, player.counts_wins) if hasattr(player, "card_values") else None


def worths_by(adviser: Adviser, hand: Hand, number: int, state: States, legal: list[int]) -> list[Worth]:
    """What an adviser finds the legal actions worth at move `number`, from 0, in this state; the best first."""
    values = adviser.values(hand.game, state, derive(hand.seeds, _HINTS + number))
    worths = [Worth(a, None if np.isnan(values[a]) else float(values[a])) for a in legal]
    return sorted(worths, key=lambda each: np.inf if each.value is None else -each.value)


class Exact:
    """The exact solution of a small game."""

    unit = "result"

    def __init__(self, settings: dict[str, Any]) -> None:
        self._settings = settings

    @cached_property
    def solved(self) -> Solved:
        """The solution, which is computed when it is first asked for."""
        from evaluate.solution import solve

        return solve(self._settings)

    def values(self, game: Game, state: States, generator: NDArray[np.uint64]) -> NDArray[np.float64]:
        """See `Adviser`. Discounted where the game's options say so, as those of `evaluate.solve`."""
        mdp, number = self.solved.model.mdp, self.solved.model.index(state[0])
        successor = mdp.successor[number]
        after = np.where(successor == END, 0.0, self.solved.solution.values[successor])
        values = (mdp.probability[number] * (mdp.reward[number] + mdp.discount * after)).sum(axis=1)
        legal = mdp.probability[number].sum(axis=1) > 0
        return np.where(legal, values, np.nan)

    def odds(self, state: States) -> list[Odds]:
        """How each action ends when all that follows is played optimally."""
        model, number = self.solved.model, self.solved.model.index(state[0])
        probability, successor = model.mdp.probability[number], model.mdp.successor[number]
        outcomes = len(model.outcomes)
        # The branches of the outcomes are the last of each action.
        after = np.where((successor == END)[..., None], 0.0, self.solved.outcomes[successor])
        chances = (probability[..., None] * after).sum(axis=1) + probability[:, -outcomes:]
        return [
            Odds(action, dict(zip(model.outcomes, chances[action].tolist(), strict=True)))
            for action in np.flatnonzero(probability.sum(axis=1) > 0).tolist()
        ]


class Coach:
    """Hints, odds and the cost of decisions in one game; `spec` is the player that is asked, None for the default."""

    def __init__(
        self,
        game: Game,
        settings: dict[str, Any],
        spec: str | None,
        player_of: Callable[[Game, str], Player] = seated_player,
    ) -> None:
        self.game, self.chosen = game, spec is not None
        self.name = spec or (EXACT if game.model is not None else DEFAULTS.get(game.name))
        self._settings, self._player_of = settings, player_of
        if spec is not None:
            _ = self.adviser  # what is wrong with it is found here

    @cached_property
    def adviser(self) -> Adviser | None:
        """Who knows what actions are worth, None if nobody does. Raises SettingsError for a player that gives none."""
        if self.name is None:
            return None
        if self.name == EXACT:
            if self.game.model is None:
                raise SettingsError(f"hint: {self.game.name} has no exact solution; name a player such as monte_carlo")
            return Exact(self._settings)
        found = adviser_of(self.game, self._player_of(self.game, self.name))
        if found is not None:
            return found
        known = "exact" if self.game.model is not None else "monte_carlo:samples=400 or search(RUN)"
        raise SettingsError(f"hint: {self.name} gives no values; name one that does, as {known}")

    def hint(self, hand: Hand) -> list[Worth]:
        """What each legal action is worth now, the best first; none where nobody knows, or the hand is over."""
        return [] if hand.over else self._worths(hand, len(hand.moves), hand.state, hand.legal)

    def judged(self, hand: Hand, number: int, move: Move) -> list[Worth]:
        """What each action was worth at move `number`, from 0, of a hand: what `hint` would have said there."""
        mask = int(self.game.legal(move.before)[0])
        return self._worths(hand, number, move.before, [a for a in range(self.game.actions) if mask >> a & 1])

    def _worths(self, hand: Hand, number: int, state: States, legal: list[int]) -> list[Worth]:
        return [] if self.adviser is None else worths_by(self.adviser, hand, number, state, legal)

    def odds(self, hand: Hand) -> list[Odds]:
        """How likely the hand is to be won from here; empty where the game has no such question."""
        if hand.over:
            return []
        if isinstance(self.adviser, Exact):
            return self.adviser.odds(hand.state)
        if self.game.name == "spike":
            from spike.search import showdown_odds

            generator = derive(hand.seeds, _ODDS + len(hand.moves))
            chance = float(showdown_odds(hand.state, _THE_ONE, _SAMPLES_OF_ODDS, generator)[0])
            return [Odds(None, {"showdown": chance})]
        return []
