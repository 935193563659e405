"""Values of the actions as hints and in reviews, from the knowledge of the seat to move."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from busso.base.errors import UserError
from busso.cards.compiled.splitmix import derive
from busso.cards.game import Game
from busso.cards.hand import Hand, Move
from busso.cards.presentation import Adviser, presentation_of
from busso.command.settings.checks import SettingsError
from busso.evaluate.review.advisers import (
    EXACT,
    ActionValue,
    Evaluation,
    ExactAdviser,
    adviser_by,
    judged_by,
    valued_player,
    valuing,
    worths_by,
)
from busso.play.table.seats import FIRST, later, table_device

_ODDS = 0x6F646473 << 16  # salt, by the number of the move
LEAST = 0.0005  # a smaller cost would be shown as 0.000 and counts as none


@dataclass(frozen=True)
class Odds:
    """Chances of the named outcomes after an action, or from the current position if `action` is None."""

    action: int | None
    chances: dict[str, float]


class Coach:
    """Hints, odds and the cost of decisions in one game; `spec` names the advising player, None for the default."""

    def __init__(self, game: Game, settings: dict[str, Any], spec: str | None) -> None:
        self.game, self.chosen = game, spec is not None
        self._names = (spec,) if spec else (EXACT,) if game.model else presentation_of(game).judging.coaches
        self._settings = settings
        if spec is not None:
            _ = self.adviser  # fail here if it cannot be used

    @property
    def name(self) -> str | None:
        """The advising player; None if the game has none."""
        return self._found[0]

    @property
    def adviser(self) -> Adviser | None:
        """The adviser on the value of actions, if any. Raises UserError for a player that gives no values."""
        return self._found[1]

    def prepare(self) -> None:
        """Load the adviser, so that the first hint need not wait; `hint` raises any error again."""
        with suppress(Exception):
            _ = self.adviser

    @cached_property
    def _found(self) -> tuple[str | None, Adviser | None]:
        """First player, with its adviser, that can judge under this table's options."""
        for name in self._names:
            try:
                return name, self._adviser(name)
            except UserError:
                if name == self._names[-1]:
                    raise
        return None, None

    def _adviser(self, name: str) -> Adviser:
        if name == EXACT:
            if self.game.model is None:
                problem = f"{self.game.name} has no exact solution"
                raise SettingsError("hint", problem, f"name a player such as {valuing(self.game)}")
            return ExactAdviser(self._settings)
        player = valued_player(self.game, name, "hint")
        adviser = adviser_by(self.game, player, table_device, "hint")
        if player.path is not None and not self.game.over(states := later(self.game))[0]:
            adviser.values(self.game, states, FIRST)  # compiles, so that the first hint need not wait
        return adviser

    def hint(self, hand: Hand) -> list[ActionValue]:
        """Return the value of each legal action, the best first; empty if unknown, or when the hand is over."""
        if hand.over or self.adviser is None:
            return []
        return worths_by(self.adviser, hand, len(hand.moves), hand.state, hand.legal)

    def judge(self, hand: Hand, number: int, move: Move) -> Evaluation | None:
        """Return the cost of move `number`, from 0, by the values of a hint there; None if forced or without values."""
        return None if self.adviser is None else judged_by(self.adviser, hand, number, move)

    def review(self, hand: Hand, seats: Sequence[int]) -> list[Evaluation]:
        """Return the judged decisions of these seats, in order, except forced ones; empty without values."""
        judged = [self.judge(hand, number, move) for number, move in enumerate(hand.moves) if move.seat in seats]
        return [each for each in judged if each is not None]

    def odds(self, hand: Hand) -> list[Odds]:
        """Return the chances to win the hand from here; empty if the game does not define them."""
        if hand.over:
            return []
        if isinstance(self.adviser, ExactAdviser):
            return [Odds(action, chances) for action, chances in self.adviser.odds(hand.state)]
        odds = presentation_of(self.game).judging.odds
        return [] if odds is None else [Odds(None, dict(odds(hand.state, derive(hand.seeds, _ODDS + len(hand.moves)))))]


class Coaching:
    """A coach's verdicts on the decisions of the people at a table, over all its games, without those taken back."""

    def __init__(self) -> None:
        self._found: dict[tuple[int, int], Evaluation] = {}

    def add(self, game: int, judged: Evaluation) -> None:
        """Record a judged decision in a game, by the game's number at the table."""
        self._found[game, judged.number] = judged

    def take_back(self, game: int, moves: int) -> bool:
        """Forget the decisions of a game after its first `moves` moves; return whether there were any."""
        taken = [place for place in self._found if place[0] == game and place[1] > moves]
        for place in taken:
            del self._found[place]
        return bool(taken)

    @property
    def decisions(self) -> int:
        """Number of decisions judged."""
        return len(self._found)

    @property
    def mistakes(self) -> int:
        """Number of decisions that were not the best."""
        return sum(map(is_mistake, self._found.values()))

    @property
    def cost(self) -> float:
        """Total cost of the decisions."""
        return sum(judged.cost for judged in self._found.values() if judged.cost is not None and is_mistake(judged))


def is_mistake(judged: Evaluation) -> bool:
    """Return whether another action was better by a visible amount."""
    return judged.cost is not None and judged.cost >= LEAST
