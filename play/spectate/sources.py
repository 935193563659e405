"""Sources of games for spectators: agents playing now, or a file of records."""

import copy
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from busso.cards.base.errors import UserError
from busso.cards.game import Game
from busso.cards.hand import Hand
from busso.cards.presentation import Adviser
from busso.command.settings.game import game_defaults
from busso.evaluate.recorded import InvalidRecord, RecordedHand, recorded_hands
from busso.evaluate.review.advisers import adviser_of
from busso.play.coach.hints import Coach
from busso.play.language import Message, message
from busso.play.table.table import Score, Setup, Table


@dataclass(frozen=True)
class Scene:
    """Hand to watch, and its title.

    `before` and `after` are the score of a match, by team; `score` is that of the previous games, including this one
    once it is over. A live source's hand grows; `after` is None until it is over, and for single games.
    """

    hand: Hand
    setup: Setup
    title: Message
    score: Score
    before: list[int] | None = None
    after: list[int] | None = None


class Agents:
    """Players in all seats of a table. Asking for the next hand plays the current one to its end."""

    def __init__(self, table: Table, coach: Coach) -> None:
        self._table, self._coach = table, coach
        self._before = table.match_score
        self._scenes = [self._scene()]
        self._own: dict[str, Adviser | None] = {}
        self._stopped = False

    def _scene(self) -> Scene:
        table = self._table
        title = message("watch.game", number=table.number + 1)
        if table.setup.match is not None:
            title = message("watch.match_hand", number=table.number + 1, hand=len(table.hands))
        after = table.match_score if table.hand.over else None
        score = copy.deepcopy(table.score if table.hand.over else table.score_before)
        return Scene(table.hand, table.setup, title, score, self._before, after)

    def scene(self, number: int) -> Scene | None:
        """Return hand `number`, from 0, as far as it was played; None if stopped before. May be slow."""
        while len(self._scenes) <= number:
            while not self._table.hand.over:
                if self._stopped:
                    return None
                self.more()
            self._table.deal()
            self._before = self._table.match_score
            self._scenes.append(self._scene())
        return self._scenes[number]

    def more(self) -> None:
        """Play a move of the latest hand, which is not over."""
        self._table.reply()
        if self._table.hand.over:
            self._scenes[-1] = self._scene()

    def stop(self) -> None:
        """Stop playing: a running `scene` returns None soon."""
        self._stopped = True

    def adviser(self, scene: Scene, seat: int) -> Adviser | None:
        """Return the adviser on a seat's actions: its own player, else the coach of the game."""
        name = scene.setup.seats[seat]
        if name not in self._own:
            self._own[name] = adviser_of(scene.hand.game, self._table.player(name))
        return self._own[name] or self._coach.adviser


class RecordedGames:
    """Hands of a file of records, with the methods of `Agents`. Records name no players: values are the coach's."""

    def __init__(self, path: Path, hands: list[RecordedHand], hint: str | None) -> None:
        self._path, self._hands, self._hint = path, hands, hint
        self._coaches: dict[tuple[str, str], Coach] = {}

    def scene(self, number: int) -> Scene | None:
        if number >= len(self._hands):
            return None
        found = self._hands[number]
        title = message("watch.line", file=self._path.name, line=found.line)
        if found.parts > 1:
            title = message("watch.part", file=self._path.name, line=found.line, part=found.part, parts=found.parts)
        setup = Setup(found.hand.game, ("",) * found.hand.game.seats, found.line, found.to)
        before, after = (list(score) or None for score in (found.before, found.after))
        return Scene(found.hand, setup, title, Score(), before, after)

    def adviser(self, scene: Scene, seat: int) -> Adviser | None:
        game = scene.hand.game
        key = (game.name, repr(game.options))
        if key not in self._coaches:
            self._coaches[key] = Coach(game, settings_of(game), self._hint)
        return self._coaches[key].adviser

    def more(self) -> None:
        """Do nothing: all moves are known."""

    stop = more


HandSource = Agents | RecordedGames


def settings_of(game: Game) -> dict[str, Any]:
    """Return the settings group `game` of a game."""
    return game_defaults(game.name) | asdict(game.options)


class RecordError(UserError):
    """Record that cannot be shown; the message names the file and the line."""


def read_hands(path: Path) -> list[RecordedHand]:
    """Return the hands of a file of records, in order. Raises RecordError for the first illegal one, and OSError."""
    found: list[RecordedHand] = []
    for hand in recorded_hands(path):
        if isinstance(hand, InvalidRecord):
            raise RecordError("watch", f"{path}, line {hand.line}: {hand.error}", "fix or delete that line")
        found.append(hand)
    if not found:
        raise RecordError("watch", f"{path}: no records in it", "record=FILE writes records while you play")
    return found
