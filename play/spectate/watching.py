"""Watching played or recorded games: forwards, backwards, hand by hand."""

from pathlib import Path
from typing import Any

from busso.cards.base import own_files
from busso.cards.game import Game
from busso.cards.hand import Move
from busso.command.settings.checks import SettingsError
from busso.command.settings.game import load_configured_game
from busso.evaluate.review.advisers import ActionValue, worths_by
from busso.play.coach.hints import Coach
from busso.play.spectate.sources import Agents, HandSource, RecordedGames, read_hands, settings_of
from busso.play.table.settings import AGENTS, Given, PlaySettings, check_match, watched_seats
from busso.play.table.table import Setup, Table, WatchedTable

# Keys that a file of records determines, and keys of files that watching does not write.
_NOT_OF_FILES = ("game", "opponents", "partner", "match", "seed", "games")
_NOT_WATCHED = ("save", "record")


def board_of(game: Game) -> tuple[str, int, Any]:
    """Return the key of a board: another game, or other options, needs another board."""
    return game.name, game.seats, game.options


class WatchedGames:
    """Position in the games of a source: a hand and its number of seen moves. `table` is the table at that position.

    Also holds how to watch, across boards: automatic play, pace, and what is shown.
    """

    def __init__(self, source: HandSource, coach: Coach, viewer: int = 0, pace: float = 0.0) -> None:
        self._source, self.coach = source, coach
        self.viewer, self.pace, self.playing = viewer, pace, True
        self.shows_hands, self.shows_values = True, True
        self.number, self.at = 0, 0
        scene = source.scene(0)
        assert scene is not None
        self.scene = scene
        self.table = WatchedTable(scene.setup, scene.hand.until(0), scene.score)
        self._show(0)

    def _show(self, at: int) -> None:
        scene, self.at = self.scene, at
        hand = scene.hand.until(at)
        score = scene.after if hand.over and scene.after is not None else scene.before
        self.table.setup, self.table.match_score = scene.setup, score
        self.table.hand, self.table.score = hand, scene.score

    @property
    def following(self) -> Move | None:
        """The next move, if known."""
        return self.scene.hand.moves[self.at] if self.at < len(self.scene.hand.moves) else None

    def think(self) -> None:
        """Let the player to move decide, unless the move is known; may be slow. The shown position stays."""
        if self.following is None and not self.table.hand.over:
            self._source.more()

    def find(self, number: int) -> bool:
        """Return whether hand `number`, from 0, exists; plays the hands before it, which may be slow."""
        return number >= 0 and self._source.scene(number) is not None

    def step(self) -> bool:
        """Advance by a move, after `think`; return False at the end of the hand."""
        if self.following is None:
            return False
        self.scene = self._source.scene(self.number) or self.scene  # its score is known when it is over
        self._show(self.at + 1)
        return True

    def back(self) -> bool:
        """Go back by a move; return False at the beginning of the hand."""
        if self.at == 0:
            return False
        self._show(self.at - 1)
        return True

    def go(self, number: int) -> None:
        """Go to the beginning of a hand that `find` has found."""
        self.scene = self._source.scene(number) or self.scene
        self.number = number
        self._show(0)
        if board_of(self.game) != board_of(self.coach.game):  # the next board uses this coach and this seat
            self.coach = Coach(self.game, settings_of(self.game), None)
            self.viewer = self.viewer if self.viewer < self.game.seats else 0

    def worths(self) -> tuple[str, list[ActionValue]]:
        """Return the values of the legal actions, best first, and the key of their unit; empty if unknown or over."""
        hand = self.table.hand
        adviser = None if hand.turn is None else self._source.adviser(self.scene, hand.turn)
        if adviser is None:
            return "", []
        return adviser.unit, worths_by(adviser, hand, len(hand.moves), hand.state, hand.legal)

    @property
    def game(self) -> Game:
        """The game in view."""
        return self.table.game

    def stop(self) -> None:
        """Stop a hand that another thread plays to its end after the next move."""
        self._source.stop()


def open_watch(settings: PlaySettings, given: Given) -> WatchedGames:
    """Open the games to watch. Raises SettingsError, CheckpointError, RecordError and OSError."""
    assert settings.watch is not None
    for key in _NOT_WATCHED:
        if key in given:
            raise SettingsError(key, "watched games are not saved", f"leave {key} out")
    if settings.watch != AGENTS:
        return _open_records(Path(settings.watch), settings, given)
    game = load_configured_game(settings.game)
    check_match(settings, game)
    table = Table(Setup(game, watched_seats(settings, game), settings.chosen_seed(), settings.match))
    coach = Coach(game, settings.game, settings.hint)
    return WatchedGames(Agents(table, coach), coach, settings.seat, settings.pace)


def _open_records(path: Path, settings: PlaySettings, given: Given) -> WatchedGames:
    for key in sorted(given):
        names_file = key == "game" and own_files.game_file(settings.game["name"]) is not None
        if key.partition(".")[0] in _NOT_OF_FILES and not names_file:
            raise SettingsError(key, f"the games of {path} are already recorded", f"leave {key} out")
    hands = read_hands(path)
    game = hands[0].hand.game
    coach = Coach(game, settings_of(game), None)
    viewer = settings.seat if settings.seat < game.seats else 0
    return WatchedGames(RecordedGames(path, hands, settings.hint), coach, viewer, settings.pace)
