"""Every number in the settings has bounds, and values just beyond are rejected by key; nothing is trained."""

import math
import re
from collections.abc import Callable, Iterator
from dataclasses import Field, asdict, fields, is_dataclass
from functools import cache
from typing import Any, get_args, get_origin, get_type_hints

import pytest

from busso.base.bounds import Bounds, bounds_of
from busso.base.errors import InputError
from busso.cards.game import load_game
from busso.command.conf_folder import CONF, own_games, values_of_conf
from busso.command.settings.checks import SettingsError
from busso.command.settings.compose import compose, settings_from_dict
from busso.command.settings.game import load_configured_game
from busso.train.settings.dqn import Targets, TrainSettings
from busso.train.settings.tabular import BatchQSettings, TabularSettings
from busso.train.tune.settings import TuneSettings
from busso.tressette.search.endgame import ExactOptions
from docs.settings import SCHEMAS
from tests.composed import game_defaults
from tests.errors import error_about

# Required settings of a command.
NEEDED = {
    "tournament": ["players=[random,greedy]"],
    "review": ["file=a"],
    "report": ["run=a"],
    "compare": ["run=[a,b]"],
}
# Settings that another check requires with a number at its bound.
BESIDE: dict[str, dict[str, Any]] = {
    "CompareSettings.deals": {"opponents": ["random"]},
    "LearnerSettings.lr": {"lr_end": 0.0},
    "LearnerSettings.lr_end": {"lr": 1e38},
}
# Bounds hold for any game; those of the default game are narrower.
NARROWER = ("NetworkSettings.inputs", "TournamentSettings.match", "PlaySettings.match", "BatchQSettings.unexplored")
GAMES = own_games()


def numbers(schema: type[Any]) -> Iterator[tuple[Field[Any], type]]:
    """Yield the numeric fields of a dataclass, also in lists, dictionaries and unions."""
    types = get_type_hints(schema)
    for each in fields(schema):
        for kind in (int, float):
            if kind in _parts(types[each.name]):
                yield each, kind


def _parts(kind: Any) -> set[Any]:
    return {kind}.union(*(_parts(each) for each in get_args(kind)))


def _groups(schema: type[Any]) -> set[type[Any]]:
    """Return a dataclass and all its nested dataclasses."""
    types = get_type_hints(schema).values()
    inner = {part for kind in types for part in _parts(kind) if is_dataclass(part)}
    return {schema}.union(*(_groups(each) for each in inner))


def _options_of_players() -> set[type[Any]]:
    of_games = {kind.options for name in GAMES for kind in load_game(name).kinds.values() if kind.options}
    return of_games | {ExactOptions}


COMMANDS = set(SCHEMAS.values())
ALGOS = {path.stem for path in (CONF / "algo").glob("*.yaml")}
SETTINGS = {each: name for name, schema in SCHEMAS.items() for each in sorted(_groups(schema), key=str)}
SETTINGS |= dict.fromkeys(get_args(Targets), "train")
GAMES_BY_OPTIONS = {type(load_game(name).options): name for name in GAMES}
PLAYERS = sorted(_options_of_players(), key=str)


@cache
def plain_values(schema: type[Any]) -> dict[str, Any]:
    """Return the default settings of a command, of training by an algorithm, or of a group or a kind of targets."""
    if schema in get_args(Targets):
        return values_of_conf("target/" + next(each.default for each in fields(schema) if each.name == "kind"))
    name = SETTINGS[schema]
    if schema not in COMMANDS:
        whole = SCHEMAS[name]
        found = [group for group, kind in get_type_hints(whole).items() if kind is schema]
        return dict(plain_values(whole)[found[0]]) if found else {}  # the items of a list have defaults of their own
    by_algo = name in ALGOS
    if schema is TuneSettings:  # its file also has the settings of training
        return {key: values_of_conf("tune")[key] for key in TuneSettings.__dataclass_fields__}
    return asdict(compose(schema, "train" if by_algo else name, [f"algo={name}"] if by_algo else NEEDED.get(name, [])))


def test_every_file_of_settings_is_looked_at() -> None:
    assert {path.stem for path in CONF.glob("*.yaml")} == {*SCHEMAS, "doctor"} - ALGOS


@pytest.mark.parametrize("schema", [*SETTINGS, *PLAYERS, *GAMES_BY_OPTIONS])
def test_every_number_has_bounds_of_its_kind(schema: type[Any]) -> None:
    for each, kind in numbers(schema):
        bounds = bounds_of(schema).get(each.name)
        assert bounds is not None, f"{schema.__name__}.{each.name} has no bounds"
        assert type(bounds.low) is type(bounds.high) is kind, f"{schema.__name__}.{each.name}"
        assert math.isfinite(bounds.low) and math.isfinite(bounds.high) and bounds.low < bounds.high
        assert not bounds.whole or bounds.high < 2**63


def ends(bounds: Bounds) -> list[float]:
    if bounds.whole:
        return [bounds.low, bounds.high]
    low = math.nextafter(bounds.low, math.inf) if bounds.above else bounds.low
    return [low, math.nextafter(bounds.high, -math.inf) if bounds.below else bounds.high]


def beyond(bounds: Bounds) -> list[float]:
    never = [-math.inf, math.nan] + ([] if math.inf in bounds.words else [math.inf])
    if bounds.whole:
        return [int(bounds.low) - 1, int(bounds.high) + 1, -(2**63), 2**63, 10**23, True, *never]
    low = bounds.low if bounds.above else math.nextafter(bounds.low, -math.inf)
    high = bounds.high if bounds.below else math.nextafter(bounds.high, math.inf)
    return [low, high, -1e300, 1e300, 10**400, True, *never]


def of_a_setting(schema: type[Any], known: Field[Any], value: float) -> None:
    name = f"{schema.__name__}.{known.name}"
    holders = {get_origin(part) for part in _parts(get_type_hints(schema)[known.name])}
    several = [value] * (3 if name == "ReviewSettings.grades" else 1)
    held = several if list in holders else {"network": value} if dict in holders else value
    settings_from_dict(schema, plain_values(schema) | BESIDE.get(name, {}) | {known.name: held})


def of_a_game(schema: type[Any], known: Field[Any], value: float) -> None:
    name = GAMES_BY_OPTIONS[schema]
    more = {"credits": 2000, "seats": 8} if name == "spike" else {}
    load_configured_game(game_defaults(name) | more | {known.name: value})


def of_a_player(schema: type[Any], known: Field[Any], value: float) -> None:
    schema(**{known.name: value})


@pytest.mark.parametrize(
    ("make", "schema", "known"),
    [
        pytest.param(make, schema, each, id=f"{schema.__module__}.{schema.__name__}.{each.name}")
        for make, schemas in ((of_a_setting, SETTINGS), (of_a_game, GAMES_BY_OPTIONS), (of_a_player, PLAYERS))
        for schema in schemas
        for each, _ in numbers(schema)
    ],
)
def test_a_number_at_its_ends_and_beyond(make: Callable[..., None], schema: type[Any], known: Field[Any]) -> None:
    bounds = bounds_of(schema)[known.name]
    for value in ends(bounds):
        if f"{schema.__name__}.{known.name}" not in NARROWER:
            halves = make is of_a_game and GAMES_BY_OPTIONS[schema] == "sette_mezzo"
            make(schema, known, round(2 * value) / 2 if halves else value)
    for value in beyond(bounds):
        with pytest.raises(InputError) as caught:
            make(schema, known, value)
        assert known.name in re.split(r"[.[]", caught.value.key), (value, str(caught.value))


@pytest.mark.parametrize("schema", [TrainSettings, BatchQSettings, TabularSettings])
def test_the_name_of_a_group_stands_before_its_settings(schema: type[Any]) -> None:
    plain = plain_values(schema)
    for group, kind in get_type_hints(schema).items():
        if is_dataclass(kind) and (held_numbers := [each for each, _ in numbers(kind)]):
            first = held_numbers[0]
            held: Any = [-1] if first.name == "hidden" else -1
            with error_about(SettingsError, f"{group}.{first.name}"):
                settings_from_dict(schema, plain | {group: plain[group] | {first.name: held}})
