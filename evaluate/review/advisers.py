"""What each action is worth in a position: from what the seat to move may know, unless an adviser says otherwise.

Shared by the reviews of recorded games and by hints at the table, so that both judge alike. PyTorch is imported by
those who need it alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cards.compiled.splitmix import derive
from cards.game import Game, States
from cards.hand import Hand
from cards.play import Decisions
from cards.presentation import Adviser
from cards.tabular.mdp import END

if TYPE_CHECKING:
    from evaluate.solve.solution import Solved

_HINTS = 0x68696E74 << 16  # salt, by the number of the move
THE_ONE = np.zeros(1, np.int64)


@dataclass(frozen=True)
class Worth:
    """What an action is worth to the seat that takes it, in the unit of the adviser; None where that is not known."""

    action: int
    value: float | None


class _Sampler:
    """A player that tries its actions and says what it found: `action_values` of `monte_carlo`."""

    def __init__(self, player: Any, unit: str) -> None:
        self._player, self.unit = player, unit

    def values(self, game: Game, state: States, generator: NDArray[np.uint64]) -> NDArray[np.float64]:
        """See `Adviser`."""
        self._player.begin(generator)
        found: NDArray[np.float64] = self._player.action_values(Decisions(game, state, THE_ONE))[0]
        return found


class _Search:
    """`search(RUN)` of Tressette, whose values from -1 to 1 are differences of points over 11, or who wins."""

    def __init__(self, player: Any, counts_wins: bool) -> None:
        self._player, self._counts_wins = player, counts_wins
        self.unit = "wins" if counts_wins else "points"

    def values(self, game: Game, state: States, generator: NDArray[np.uint64]) -> NDArray[np.float64]:
        """See `Adviser`. Cards that come to the same as one that was tried have its value."""
        from tressette.rules import POINTS
        from tressette.search.worlds import runs_of

        self._player.begin(generator)
        decisions = Decisions(game, state, THE_ONE)
        found = self._player.card_values(decisions)[0]
        found[np.isneginf(found)] = np.nan
        run = np.full(game.actions, -1)
        runs_of(state[0], decisions.legal[0], run)
        for card in np.flatnonzero(run >= 0):
            alike = found[run == run[card]]
            if np.isnan(found[card]) and not np.isnan(alike).all():
                found[card] = np.nanmax(alike)
        scaled: NDArray[np.float64] = found if self._counts_wins else (found + 1) / 2 * POINTS
        return scaled


def adviser_of(game: Game, player: Any) -> Adviser | None:
    """What a player that tries its actions finds them worth; None for one that does not say."""
    if hasattr(player, "action_values"):
        return _Sampler(player, game.unit)
    return _Search(player, player.counts_wins) if hasattr(player, "card_values") else None


class Exact:
    """The exact solution of a small game, by the settings of its group `game`."""

    unit = "result"

    def __init__(self, settings: dict[str, Any]) -> None:
        self._settings = settings

    @cached_property
    def solved(self) -> Solved:
        """The solution, which is computed when it is first asked for."""
        from evaluate.solve.solution import solve

        return solve(self._settings)

    def values(self, game: Game, state: States, generator: NDArray[np.uint64]) -> NDArray[np.float64]:
        """See `Adviser`. Discounted where the game's options say so, as those of `evaluate.solve`."""
        mdp, number = self.solved.model.mdp, self.solved.model.index(state[0])
        successor = mdp.successor[number]
        after = np.where(successor == END, 0.0, self.solved.solution.values[successor])
        values = (mdp.probability[number] * (mdp.reward[number] + mdp.discount * after)).sum(axis=1)
        legal = mdp.probability[number].sum(axis=1) > 0
        return np.where(legal, values, np.nan)

    def odds(self, state: States) -> list[tuple[int, dict[str, float]]]:
        """How likely each outcome is after each legal action, when all that follows is played optimally."""
        model, number = self.solved.model, self.solved.model.index(state[0])
        probability, successor = model.mdp.probability[number], model.mdp.successor[number]
        outcomes = len(model.outcomes)
        # The branches of the outcomes are the last of each action.
        after = np.where((successor == END)[..., None], 0.0, self.solved.outcomes[successor])
        chances = (probability[..., None] * after).sum(axis=1) + probability[:, -outcomes:]
        return [
            (action, dict(zip(model.outcomes, chances[action].tolist(), strict=True)))
            for action in np.flatnonzero(probability.sum(axis=1) > 0).tolist()
        ]


def worths_by(adviser: Adviser, hand: Hand, number: int, state: States, legal: list[int], look: int = 0) -> list[Worth]:
    """What an adviser finds the legal actions worth at move `number`, from 0, in this state; the best first.

    Each `look` at the same move draws anew.
    """
    values = adviser.values(hand.game, state, derive(hand.seeds, _HINTS + number + (look << 48)))
    worths = [Worth(a, None if np.isnan(values[a]) else float(values[a])) for a in legal]
    return sorted(worths, key=lambda each: np.inf if each.value is None else -each.value)
