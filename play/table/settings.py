"""Settings of `busso play`, and the players that they put in the seats."""

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from busso.base.bounds import Bounds
from busso.cards.game import Game
from busso.command.settings.checks import (
    MAX_SEATS,
    MAX_SEED,
    MAX_TARGET,
    SettingsError,
    check_numbers,
    check_one_of,
    check_range,
    errors_about,
    require,
)
from busso.command.settings.quoting import Override, spelled
from busso.play.language import LANGUAGES
from busso.play.table.seats import HUMAN, default_opponent

PLAIN, APP, AUTO = "plain", "app", "auto"
AGENTS = "agents"
MOST_GAMES = 1_000_000


Given = Mapping[str, Override]  # the overrides of a command line by key


@dataclass
class PlaySettings:
    """Settings of `busso play`, which conf/play.yaml explains."""

    game: dict[str, Any]
    opponents: Annotated[Any, str]  # or a list of them
    partner: str | None
    seat: Annotated[int, Bounds(0, MAX_SEATS - 1)]
    match: Annotated[int | None, Bounds(1, MAX_TARGET, words=(None,))]
    games: Annotated[int, Bounds(1, MOST_GAMES)]
    seed: Annotated[int | None, Bounds(0, MAX_SEED, words=(None,))]
    hint: str | None
    record: str | None
    save: str | None
    lang: str
    ui: str
    pace: Annotated[float, Bounds(0.0, 60.0)]
    watch: str | None
    serve: bool
    port: Annotated[int, Bounds(0, 65_535)]

    def __post_init__(self) -> None:
        check_numbers("", self)
        check_one_of("ui", self.ui, AUTO, APP, PLAIN)
        check_one_of("lang", self.lang, *LANGUAGES)
        self.hint = spelled("hint", self.hint) if self.hint else None
        for key in ("record", "save"):
            require(getattr(self, key) != "", key, "a file", "")
        if self.serve and self.ui == PLAIN:
            raise SettingsError("ui", "text mode cannot be served", "leave ui out, or serve")
        require(self.watch != "", "watch", f"{AGENTS} or a file of records", "")
        many = isinstance(self.opponents, list) and self.opponents and all(isinstance(o, str) for o in self.opponents)
        if self.opponents is not None and not isinstance(self.opponents, str) and not many:
            raise SettingsError(
                "opponents", f"expected a player or a list with one for each seat, not {self.opponents!r}"
            )

    def chosen_seed(self) -> int:
        """Return the seed, or one from the clock."""
        return self.seed if self.seed is not None else time.time_ns() % 1_000_000_000


def seats_of(settings: PlaySettings, game: Game) -> tuple[str, ...]:
    """Return the name of the player in each seat, or `human`. Raises SettingsError."""
    least = getattr(game.options, "min_seats", None) or game.seats
    check_range("seat", settings.seat, 0, least - 1)
    team, others = _sides(settings, game)
    if not others and settings.opponents is not None:
        raise SettingsError("opponents", f"{game.name} has one seat, and the dealer plays by a rule", "leave this out")
    if len(team) == 1 and settings.partner is not None:
        raise SettingsError("partner", f"in {game.name} each seat plays for itself", "leave this out")
    names = _opponents(settings, game, len(others))
    players = [name for name in names if name != HUMAN] or [default_opponent(game)]
    seats = {settings.seat: HUMAN, **dict(zip(others, names, strict=True))}
    return _seated(game, seats, settings.partner if settings.partner is not None else players[0])


def watched_seats(settings: PlaySettings, game: Game) -> tuple[str, ...]:
    """Return the players to watch; `partner`, or the first opponent, has the viewer's seat. Raises SettingsError."""
    check_range("seat", settings.seat, 0, game.seats - 1)
    _, others = _sides(settings, game)
    names = _opponents(settings, game, len(others) or 1)
    for name in (*names, settings.partner):
        require(name != HUMAN, "watch", "players in all seats", HUMAN)
    seats = dict(zip(others, names, strict=False))
    return _seated(game, seats, settings.partner if settings.partner is not None else names[0])


def _sides(settings: PlaySettings, game: Game) -> tuple[tuple[int, ...], list[int]]:
    """Return the seats of the person's team, and all others."""
    team = next(seats for seats in game.teams if settings.seat in seats)
    return team, [seat for seat in range(game.seats) if seat not in team]


def _seated(game: Game, seats: Mapping[int, str], partner: str) -> tuple[str, ...]:
    return tuple(spelled("opponents", seats.get(seat, partner)) for seat in range(game.seats))


def _opponents(settings: PlaySettings, game: Game, number: int) -> list[str]:
    if not isinstance(settings.opponents, list):
        return [settings.opponents or default_opponent(game)] * number
    if len(settings.opponents) != number:
        raise SettingsError(
            "opponents", f"expected {number}, not {len(settings.opponents)}", f"give one for all or {number}"
        )
    return settings.opponents


def check_match(settings: PlaySettings, game: Game) -> None:
    """Raise SettingsError if the game is not played in matches to that score."""
    if settings.match is not None:
        from busso.cards.match import match_rules  # imports Numba, for which no menu waits

        with errors_about("match"):
            match_rules(game, settings.match)


def check_same(path: Path, saved: dict[str, Any], settings: PlaySettings, given: Iterable[str], game: Game) -> None:
    """Raise SettingsError if the command line, by the keys `given`, contradicts the save."""
    for key in given:
        if key == "game":
            _same(path, key, settings.game["name"], saved["game"]["name"])
        elif key.startswith("game."):
            option = key.removeprefix("game.")
            _same(path, key, settings.game.get(option), saved["game"].get(option))
        elif key in ("seed", "match"):
            _same(path, key, getattr(settings, key), saved[key])
        elif key == "seat":
            people = [seat for seat, name in enumerate(saved["seats"]) if name == HUMAN]
            _same(path, key, settings.seat, settings.seat if settings.seat in people else people[0])
        elif key in ("opponents", "partner"):
            _same(path, key, list(seats_of(settings, game)), saved["seats"])


def _same(path: Path, key: str, wanted: Any, saved: Any) -> None:
    if wanted != saved:
        raise SettingsError(key, f"{wanted}, but {path} was saved with {saved}", f"leave {key} out or use another save")
