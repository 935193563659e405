"""Choices before a table starts: the settings of each game, and the options for each."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

import yaml

from busso.cards import player_specs
from busso.cards.game import Game, load_game
from busso.cards.packages import typed_game
from busso.cards.player_specs import CHAMPION, POLICIES, player_names
from busso.cards.presentation import presentation_of
from busso.command.settings.checks import MAX_SEED, SettingsError
from busso.command.settings.quoting import in_quotes, value_text
from busso.play.table.seats import HUMAN, default_opponent

RUNS = Path("runs")
APART = "apart"  # each seat has its own opponent


@dataclass(frozen=True)
class SettingRow:
    """Setting with its value, the offered values, and whether others may be typed (`free`).

    Values are as on a command line; "" is the default, such as a seed from the clock. `seat.N` is the player of a seat
    if opponents are chosen separately.
    """

    key: str
    value: str
    offered: tuple[str, ...]
    free: bool = True


class Choices:
    """Settings of a table of one game, chosen one by one. Raises UnknownGameError."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._game = load_game(name)
        self._defaults = asdict(self._game.options)
        self._options = dict(self._defaults)
        self._kinds = get_type_hints(type(self._game.options))
        self._players = offered_players(self._game)
        self._chosen: dict[str, str] = {}

    @property
    def game(self) -> Game:
        """The game under the chosen options."""
        return self._game

    def rows(self) -> list[SettingRow]:
        """Return all settings, in display order."""
        files = [SettingRow(key, self._chosen.get(key, ""), ("",)) for key in ("seed", "record")]
        return [*self._who(), *self._what(), *self._option_rows(), *files]

    def row(self, key: str) -> SettingRow:
        """Return the setting of a key. Raises KeyError."""
        return {row.key: row for row in self.rows()}[key]

    def choose(self, key: str, text: str) -> None:
        """Set a value that was offered or typed. Raises SettingsError, one line, and then changes nothing."""
        text = text.strip()
        row = self.row(key)
        if text not in row.offered:
            self._check_typed(key, text)
        if key.startswith("game."):
            self._set_option(key.removeprefix("game."), text)
        else:
            self._chosen[key] = text
        for seat_key in [k for k in self._chosen if k == "seat" or k.startswith("seat.")]:
            number = self._chosen["seat"] if seat_key == "seat" else seat_key.removeprefix("seat.")
            if number and int(number) >= self._game.seats:  # there are fewer seats now
                del self._chosen[seat_key]

    def overrides(self) -> list[str]:
        """Return the command-line overrides for this table."""
        found = [f"game={typed_game(self.name)}"]
        found += [f"game.{k}={value_text(v)}" for k, v in self._options.items() if v != self._defaults[k]]
        if self._apart:
            found.append(f"opponents=[{','.join(in_quotes(self._sits(seat)) for seat in self._others)}]")
        elif opponents := self._chosen.get("opponents"):
            found.append(f"opponents={in_quotes(opponents)}")
        found += [f"{key}={self._chosen[key]}" for key in ("seat", "match", "seed") if self._chosen.get(key)]
        found += [f"{key}={in_quotes(self._chosen[key])}" for key in ("partner", "record") if self._chosen.get(key)]
        return found

    def _who(self) -> Iterator[SettingRow]:
        if self._partners:
            yield SettingRow("partner", self._chosen.get("partner", ""), ("", *self._players))
        if self._others:
            apart = (APART,) if len(self._others) > 1 else ()
            value = self._chosen.get("opponents", default_opponent(self._game))
            yield SettingRow("opponents", value, (*self._players, *apart))
        if self._apart:
            for seat in self._others:
                yield SettingRow(f"seat.{seat}", self._sits(seat), self._players)

    def _what(self) -> Iterator[SettingRow]:
        if self._game.match is not None:
            targets = tuple(str(target) for target in self._game.match.targets)
            yield SettingRow("match", self._chosen.get("match", ""), ("", *targets), free=False)
        if self._game.seats > 1:
            least = getattr(self._game.options, "min_seats", None) or self._game.seats
            seats = tuple(str(seat) for seat in range(least))
            yield SettingRow("seat", self._chosen.get("seat", "0"), seats, free=False)

    def _option_rows(self) -> Iterator[SettingRow]:
        for field in fields(self._game.options):
            value = value_text(self._options[field.name])
            offered = [each for each in self._offered(field.name) if self._fits(field.name, each)]
            free = self._kinds[field.name] is not bool and get_origin(self._kinds[field.name]) is not Literal
            yield SettingRow(f"game.{field.name}", value, tuple(map(value_text, offered)), free)

    @property
    def _apart(self) -> bool:
        return self._chosen.get("opponents") == APART and len(self._others) > 1

    @property
    def _seat(self) -> int:
        return int(self._chosen.get("seat", "0"))

    @property
    def _partners(self) -> list[int]:
        team = next(seats for seats in self._game.teams if self._seat in seats)
        return [seat for seat in team if seat != self._seat]

    @property
    def _others(self) -> list[int]:
        return [seat for seat in range(self._game.seats) if seat != self._seat and seat not in self._partners]

    def _sits(self, seat: int) -> str:
        return self._chosen.get(f"seat.{seat}", default_opponent(self._game))

    def _offered(self, name: str) -> tuple[Any, ...]:
        kind = self._kinds[name]
        if kind is bool:
            return (False, True)
        if get_origin(kind) is Literal:
            return get_args(kind)
        return presentation_of(self._game).offered.get(name, (self._defaults[name],))

    def _fits(self, name: str, value: Any) -> bool:
        try:
            self._game.configure(self._options | {name: value})
        except ValueError:
            return False
        return True

    def _set_option(self, name: str, text: str) -> None:
        try:
            options = self._options | {name: yaml.safe_load(text)}
            self._game = self._game.configure(options)
        except yaml.YAMLError:
            raise SettingsError(f"game.{name}", f"expected a number or a word, not {text!r}") from None
        except ValueError as error:
            raise SettingsError.of(error, "game") from None
        self._options = options

    def _check_typed(self, key: str, text: str) -> None:
        if key == "seed" and not (text.isascii() and text.isdecimal() and int(text) <= MAX_SEED):
            raise SettingsError("seed", f"expected an integer from 0 to {MAX_SEED}, not {text!r}")
        if not text:
            raise SettingsError(key.removeprefix("game."), "type a name or choose from the list")


def offered_players(game: Game, runs: Path = RUNS) -> tuple[str, ...]:
    """Return possible opponents by name: rule players, search players, trained agents, and a person.

    `champion` comes first, shipped or a run of that name; then the game's default rule player.
    """
    found = sorted((runs / game.name).iterdir()) if (runs / game.name).is_dir() else []
    networks = [str(run) for run in found if (run / "checkpoints").is_dir()]
    trained = [str(run) for run in found if str(run) in networks or POLICIES.newest_first(run / "policies")]
    shipped = [CHAMPION] if player_specs.champion_file(game) is not None else []
    first = shipped + [run for run in trained if Path(run).name == CHAMPION]
    searching = [name for name, kind in game.kinds.items() if kind.of_network]
    searches = [f"{name}:{run}" for name in searching for run in [*shipped, *networks]]
    rules = [default_opponent(game), *game.policies, *player_names(game)]
    return tuple(dict.fromkeys([*first, *rules, *trained, *searches, HUMAN]))
