"""Games to watch, live, recorded or saved: forwards, backwards, hand by hand, with commentary."""

import copy
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from busso.base.errors import UserError
from busso.cards import packages
from busso.cards.game import Game
from busso.cards.hand import Hand, Move
from busso.cards.presentation import Adviser
from busso.command.settings.checks import SettingsError
from busso.command.settings.game import load_configured_game
from busso.command.settings.trusted import group_of
from busso.evaluate.recorded import InvalidRecord, RecordedHand, recorded_hands
from busso.evaluate.review.advisers import ActionValue, adviser_of, worths_by
from busso.evaluate.review.drawing import shares
from busso.play.language import Message, message
from busso.play.table.hints import Coach
from busso.play.table.session import Session, open_session, warm_up
from busso.play.table.settings import AGENTS, Given, PlaySettings, check_match, watched_seats
from busso.play.table.sitting import SLOWER
from busso.play.table.speech import Speech, value_text
from busso.play.table.table import Score, Setup, Table, WatchedTable
from busso.play.views import events, open_hands, result

# Keys that a file of records determines, and keys of files that watching does not write.
_NOT_OF_FILES = ("game", "opponents", "partner", "match", "seed", "games")
_NOT_WATCHED = ("save", "record")
_EIGHTHS = " ▏▎▍▌▋▊▉█"
_LEAST, _MOST = 6, 24  # cells of a bar
NEXT = "▸"  # marks the next action
PACES = (0.0, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4)  # seconds between moves
AFTER_HAND = 6  # times the pace, to read how a hand ended


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
            self._own[name] = adviser_of(scene.hand.game, self._table.players[name])
        return self._own[name] or self._coach.adviser


class RecordedGames:
    """Hands of a file of records, with the methods of `Agents`. Values are the coach's, not those of who played."""

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
        names = (*found.names, *("",) * found.hand.game.seats)[: found.hand.game.seats]
        setup = Setup(found.hand.game, names, found.line, found.to)
        before, after = (list(score) or None for score in (found.before, found.after))
        return Scene(found.hand, setup, title, Score(), before, after)

    def adviser(self, scene: Scene, seat: int) -> Adviser | None:
        game = scene.hand.game
        key = (game.name, repr(game.options))
        if key not in self._coaches:
            self._coaches[key] = Coach(game, group_of(game), self._hint)
        return self._coaches[key].adviser

    def more(self) -> None:
        """Do nothing: all moves are known."""

    stop = more


HandSource = Agents | RecordedGames


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

    def step(self) -> None:
        """Advance by a move, after `think`; at the end of the hand do nothing."""
        if self.following is not None:
            self.scene = self._source.scene(self.number) or self.scene  # its score is known when it is over
            self._show(self.at + 1)

    def back(self) -> None:
        """Go back by a move; at the beginning of the hand do nothing."""
        self._show(max(self.at - 1, 0))

    def go(self, number: int) -> None:
        """Go to the beginning of a hand that `find` has found."""
        self.scene = self._source.scene(number) or self.scene
        self.number = number
        self._show(0)
        if board_of(self.game) != board_of(self.coach.game):  # the next board uses this coach and this seat
            self.coach = Coach(self.game, group_of(self.game), None)
            self.viewer = self.viewer if self.viewer < self.game.seats else 0

    def worths(self) -> tuple[str, list[ActionValue]]:
        """Return the values of the legal actions, best first, and the key of their unit; empty if unknown or over."""
        hand = self.table.hand
        adviser = None if hand.turn is None else self._source.adviser(self.scene, hand.turn)
        if adviser is None:
            return "", []
        return adviser.unit, worths_by(adviser, hand, len(hand.moves), hand.state, hand.legal)

    def faster(self) -> None:
        """Shorten the pace."""
        self.pace = max((each for each in PACES if each < self.pace), default=PACES[0])

    def slower(self) -> None:
        """Lengthen the pace."""
        self.pace = min((each for each in PACES if each > self.pace), default=PACES[-1])

    def seconds_to_look(self, longer: bool) -> float:
        """Return how long automatic play shows this position, `longer` after an event worth looking at."""
        return self.pace * (AFTER_HAND if self.table.hand.over else SLOWER if longer else 1)

    @property
    def game(self) -> Game:
        """The game in view."""
        return self.table.game

    def stop(self) -> None:
        """Stop a hand that another thread plays to its end after the next move."""
        self._source.stop()


def open_table(settings: PlaySettings, given: Given) -> Session | WatchedGames:
    """Open a table, compiled and with its coach loading, or the games to watch. Raises UserError and OSError."""
    if settings.watch is not None:
        return open_watch(settings, given)
    session = open_session(settings, given)
    warm_up(session)  # compiles now, not at the first moves
    threading.Thread(target=session.coach.prepare).start()  # imports PyTorch, 2 s, before the first hint
    return session


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
        names_file = key == "game" and packages.game_file(settings.game["name"]) is not None
        if key.partition(".")[0] in _NOT_OF_FILES and not names_file:
            raise SettingsError(key, f"the games of {path} are already recorded", f"leave {key} out")
    hands = read_hands(path)
    game = hands[0].hand.game
    coach = Coach(game, group_of(game), None)
    viewer = settings.seat if settings.seat < game.seats else 0
    return WatchedGames(RecordedGames(path, hands, settings.hint), coach, viewer, settings.pace)


class Commentary:
    """Lines of text about the current position of a `WatchedGames`."""

    def __init__(self, speech: Speech, watch: WatchedGames) -> None:
        self._language, self._speech, self._watch = speech.language, speech, watch
        self._shown_to = -1, 0  # hand and move of the latest `catch_up`

    @property
    def may_know(self) -> bool:
        """True if the action values of the seat to move may be shown."""
        return self._watch.shows_hands or self._watch.table.hand.turn in (None, self._watch.viewer)

    def title(self) -> str:
        """Return the game, the players, the hand's title and the score of a match."""
        say, table = self._language.say, self._watch.table
        names = [name for name in table.setup.seats if name]
        who = names[:1] if len(set(names)) == 1 else names
        score = table.match_score
        standing = "" if score is None else say("watch.score", score=tuple(score), to=table.setup.match)
        parts = (
            self._language.game(table.game.name),
            ", ".join(who),
            self._language.render(self._watch.scene.title),
            standing,
        )
        return say("watch.title", game=" · ".join(part for part in parts if part))

    def computing(self, key: str) -> str:
        """Return the prompt during a computation, by its text key."""
        turn = self._watch.table.hand.turn
        return self._language.say(key, seat=turn, name="" if turn is None else self._watch.table.setup.seats[turn])

    def prompt(self) -> str:
        """Return the prompt: the seat to move, and the keys of a spectator."""
        say, watch, hand = self._language.say, self._watch, self._watch.table.hand
        here = say("watch.hand_over") if hand.over else say("watch.to_move", move=len(hand.moves) + 1, seat=hand.turn)
        how = say("watch.playing", pace=f"{watch.pace:g}") if watch.playing else say("watch.paused")
        hands = say("watch.shown" if watch.shows_hands else "watch.closed")
        return " · ".join((here, how, hands, say("watch.looks_from", seat=watch.viewer)))

    def catch_up(self) -> tuple[bool, list[str], list[str]]:
        """Return whether the log begins anew at this position, the lines since the last call, and the latest news."""
        hand, (number, at) = self._watch.table.hand, self._shown_to
        anew = number != self._watch.number or at > len(hand.moves)
        at = 0 if anew else at
        self._shown_to = self._watch.number, len(hand.moves)
        ended = self.ended() if at < max(1, len(hand.moves)) else []
        lines = [line for move in hand.moves[at:] for line in self.happened(move)]
        last = self.happened(hand.moves[-1]) if hand.moves else []
        return anew, lines + ended, [*last, *ended][-3:]

    def happened(self, move: Move) -> list[str]:
        """Describe a move of the hand as everybody saw it."""
        return self._speech.lines(events(self._watch.table.hand, move))

    def ended(self) -> list[str]:
        """Describe the result of the hand; empty before it is over."""
        hand = self._watch.table.hand
        return self._speech.lines(result(hand)) if hand.over else []

    def hands(self, width: int) -> list[str]:
        """List the hidden cards, two seats side by side where they fit; empty while the hands are closed."""
        if not self._watch.shows_hands:
            return []
        lines = self._speech.lines(open_hands(self._watch.table.hand))
        half = width // 2
        if max(map(len, lines), default=0) >= half:
            return lines
        return [" ".join(f"{line:<{half - 1}}" for line in lines[k : k + 2]).rstrip() for k in range(0, len(lines), 2)]

    def values(self, found: tuple[str, list[ActionValue]] | None, width: int) -> list[str]:
        """List the values of the actions, from `WatchedGames.worths`; None while they are unknown."""
        say, turn = self._language.say, self._watch.table.hand.turn
        if turn is None or not self._watch.shows_values:
            return []
        if not self.may_know:
            return [say("watch.hidden_values", seat=turn)]
        if found is None:
            return [say("watch.counting")]
        unit, worths = found
        if not worths:
            return [say("watch.no_values")]
        played = None if self._watch.following is None else self._watch.following.action
        head = say("watch.values", seat=turn, unit=self._language.unit(unit))
        return [head, *bars(worths, unit, self._speech.action, played, width)]


def bars(
    worths: Sequence[ActionValue], unit: str, name: Callable[[int], str], following: int | None, width: int
) -> list[str]:
    """Format actions in rows, best first down the columns, with bars of their values; `following` is marked."""
    names = [name(each.action) for each in worths]
    values = [value_text(each.value, unit) for each in worths]
    texts = [
        f"{NEXT if each.action == following else ' '}{called:<{max(map(len, names))}} {value:>{max(map(len, values))}} "
        for each, called, value in zip(worths, names, values, strict=True)
    ]
    columns = min(len(texts), max(1, width // (len(texts[0]) + _LEAST + 1)))
    rows = -(-len(texts) // columns)
    columns = -(-len(texts) // rows)
    cells = min(_MOST, max(_LEAST, width // columns - len(texts[0]) - 1))
    shown = [text + _bar(share, cells) for text, share in zip(texts, shares(worths), strict=True)]
    return [" ".join(shown[row::rows]).rstrip() for row in range(rows)]


def _bar(share: float, cells: int) -> str:
    eighths = max(1, round(share * cells * 8))  # at least a sliver, to show where bars begin
    return ("█" * (eighths // 8) + _EIGHTHS[eighths % 8].strip()).ljust(cells)
