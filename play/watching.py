"""Games that one looks on at: agents play them, or they were recorded; forwards, backwards, hand by hand."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from cards.game import Game, States
from cards.play import Decisions
from command.checks import SettingsError
from command.game import game_defaults, load_configured_game
from play.hand import Hand, Move
from play.hints import Adviser, Coach, Worth, adviser_of, worths_by
from play.language import Message, message
from play.recorded import Recorded, read_hands
from play.settings import AGENTS, PlaySettings, check_match, watched_seats
from play.table import Score, Setup, Table

_THE_ONE = np.zeros(1, np.int64)
# What a file of records says itself, or what nothing is made of while one looks on.
_NOT_OF_FILES = ("game", "opponents", "partner", "match", "seed", "games")
_NOT_WATCHED = ("save", "record")


@dataclass(frozen=True)
class Scene:
    """A hand to look on at, and what it is called. `before` and `after` are the score of a match, by team.

    The hand of a source that plays grows; `after` is None until it is over, and for single games.
    """

    hand: Hand
    setup: Setup
    title: Message
    before: list[int] | None = None
    after: list[int] | None = None


class Source(Protocol):
    """Where the hands come from."""

    def scene(self, number: int) -> Scene | None:
        """Hand number `number`, from 0, as far as it was played; None if there are no more. May take its time."""

    def more(self) -> bool:
        """One more move in the newest hand, which is not over; False where nobody plays on."""

    def adviser(self, scene: Scene, seat: int) -> Adviser | None:
        """Who knows what the actions of the seat are worth: itself, else the coach of the game."""


class Agents:
    """Players in all seats of a table. The next hand is dealt when the one before is over, so it is played out then."""

    def __init__(self, table: Table, coach: Coach) -> None:
        self._table, self._coach = table, coach
        self._before = table.match_score
        self._scenes = [self._scene()]
        self._own: dict[str, Adviser | None] = {}

    def _scene(self) -> Scene:
        table = self._table
        title = message("watch.game", number=table.number + 1)
        if table.setup.match is not None:
            title = message("watch.match_hand", number=table.number + 1, hand=len(table.hands))
        after = table.match_score if table.hand.over else None
        return Scene(table.hand, table.setup, title, self._before, after)

    def scene(self, number: int) -> Scene | None:
        """See `Source`."""
        while len(self._scenes) <= number:
            while not self._table.hand.over:
                self.more()
            self._table.deal()
            self._before = self._table.match_score
            self._scenes.append(self._scene())
        return self._scenes[number]

    def more(self) -> bool:
        """See `Source`."""
        self._table.reply()
        if self._table.hand.over:
            self._scenes[-1] = self._scene()
        return True

    def adviser(self, scene: Scene, seat: int) -> Adviser | None:
        """See `Source`."""
        name = scene.setup.seats[seat]
        if name not in self._own:
            player = self._table.player(name)
            self._own[name] = adviser_of(scene.hand.game, player) or _network_of(player)
        return self._own[name] or self._coach.adviser


class Film:
    """Hands of a file. Nobody knows who played them, so values are those of the coach."""

    def __init__(self, path: Path, hands: list[Recorded], hint: str | None) -> None:
        self._path, self._hands, self._hint = path, hands, hint
        self._coaches: dict[tuple[str, str], Coach] = {}

    def scene(self, number: int) -> Scene | None:
        """See `Source`."""
        if number >= len(self._hands):
            return None
        found = self._hands[number]
        title = message("watch.line", file=self._path.name, line=found.line)
        if found.parts > 1:
            title = message("watch.part", file=self._path.name, line=found.line, part=found.part, parts=found.parts)
        setup = Setup(found.hand.game, ("",) * found.hand.game.seats, found.line, found.to)
        before, after = (list(score) or None for score in (found.before, found.after))
        return Scene(found.hand, setup, title, before, after)

    def more(self) -> bool:
        """See `Source`."""
        return False

    def adviser(self, scene: Scene, seat: int) -> Adviser | None:
        """See `Source`."""
        game = scene.hand.game
        key = (game.name, repr(game.options))
        if key not in self._coaches:
            settings = game_defaults(game.name) | _options(game)
            self._coaches[key] = Coach(game, settings, self._hint)
        return self._coaches[key].adviser


def _options(game: Game) -> dict[str, Any]:
    from dataclasses import asdict

    return asdict(game.options)


class _Network:
    """The values that a network itself gives its actions."""

    unit = "network"

    def __init__(self, player: Any) -> None:
        self._player = player

    def values(self, game: Game, state: States, generator: NDArray[np.uint64]) -> NDArray[np.float64]:
        """See `Adviser`."""
        decisions = Decisions(game, state, _THE_ONE)
        found: NDArray[np.float64] = self._player.values(decisions.observation)[0].astype(np.float64)
        return found


def _network_of(player: Any) -> Adviser | None:
    return _Network(player) if hasattr(player, "values") else None


@dataclass
class Stage:
    """What is seen of a table, with the names that `play.table.Table` has for it, so that its screen can draw it."""

    setup: Setup
    hand: Hand
    number: int = 0
    match_score: list[int] | None = None
    score: Score = field(default_factory=Score)
    people: tuple[int, ...] = ()  # nobody who could be asked
    person_to_move: bool = False

    @property
    def game(self) -> Game:
        """What is played."""
        return self.setup.game

    @property
    def hands(self) -> list[Hand]:
        """The hand that is seen."""
        return [self.hand]

    @property
    def turn(self) -> int | None:
        """The seat to move."""
        return self.hand.turn

    @property
    def game_over(self) -> bool:
        """Whether the hand is over."""
        return self.hand.over


class Watch:
    """A place in the games of a source: a hand, and how many of its moves were seen. `table` is what is seen there."""

    def __init__(self, source: Source, coach: Coach, viewer: int = 0) -> None:
        self._source, self.coach, self.viewer = source, coach, viewer
        self.number, self.at = 0, 0
        scene = source.scene(0)
        assert scene is not None
        self.scene = scene
        self.table = Stage(scene.setup, scene.hand.until(0))
        self._show(0)

    def _show(self, at: int) -> None:
        scene, self.at = self.scene, at
        hand = scene.hand.until(at)
        score = scene.after if hand.over and scene.after is not None else scene.before
        self.table.setup, self.table.number, self.table.match_score = scene.setup, self.number, score
        self.table.hand = hand

    @property
    def following(self) -> Move | None:
        """The next move, where it is known."""
        return self.scene.hand.moves[self.at] if self.at < len(self.scene.hand.moves) else None

    def step(self) -> Move | None:
        """Go on by a move, which somebody may have to think of; None at the end of the hand."""
        if self.table.hand.over:
            return None
        if self.following is None:
            self._source.more()
            self.scene = self._source.scene(self.number) or self.scene
        move = self.following
        self._show(self.at + 1)
        return move

    def back(self) -> bool:
        """Go back by a move; False at the beginning of the hand."""
        if self.at == 0:
            return False
        self._show(self.at - 1)
        return True

    def go(self, number: int) -> bool:
        """Go to the beginning of hand `number`, from 0; False if there is none."""
        scene = self._source.scene(number) if number >= 0 else None
        if scene is None:
            return False
        self.number, self.scene = number, scene
        self._show(0)
        return True

    def worths(self) -> tuple[str, list[Worth]]:
        """What the legal actions of the seat to move are worth, the best first, and the key of their unit.

        Empty where nobody knows, and when the hand is over.
        """
        hand = self.table.hand
        adviser = None if hand.turn is None else self._source.adviser(self.scene, hand.turn)
        if adviser is None:
            return "", []
        return adviser.unit, worths_by(adviser, hand, len(hand.moves), hand.state, hand.legal)

    # What a table's screen asks of a session.
    finished = False

    def leave(self) -> bool:
        """Nothing is saved."""
        return False


def open_watch(settings: PlaySettings, given: set[str]) -> Watch:
    """What the settings want to look on at. Raises SettingsError, CheckpointError, RecordError and OSError."""
    assert settings.watch is not None
    for key in _NOT_WATCHED:
        if key in given:
            raise SettingsError(f"{key}: nothing is kept of games that you look on at; leave {key} out")
    if settings.watch != AGENTS:
        return _open_film(Path(settings.watch), settings, given)
    game = load_configured_game(settings.game)
    check_match(settings, game)
    seed = settings.seed if settings.seed is not None else time.time_ns() % 1_000_000_000
    table = Table(Setup(game, watched_seats(settings, game), seed, settings.match))
    coach = Coach(game, settings.game, settings.hint)
    return Watch(Agents(table, coach), coach, settings.seat)


def _open_film(path: Path, settings: PlaySettings, given: set[str]) -> Watch:
    for key in sorted(given):
        if key.partition(".")[0] in _NOT_OF_FILES:
            raise SettingsError(f"{key}: the games of {path} are as they were recorded; leave {key} out")
    hands = read_hands(path)
    game = hands[0].hand.game
    coach = Coach(game, game_defaults(game.name) | _options(game), None)
    viewer = settings.seat if settings.seat < game.seats else 0
    return Watch(Film(path, hands, settings.hint), coach, viewer)
