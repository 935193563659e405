"""Composition of settings by Hydra from conf/ and the command line into dataclasses, which check them."""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, fields
from functools import cache
from traceback import walk_tb
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, cast, runtime_checkable

import yaml

from busso.base.errors import InputError
from busso.base.files import with_home
from busso.command.commands import COMMANDS
from busso.command.conf_folder import CONF, choices_with, groups_of
from busso.command.settings.checks import SettingsError, check_one_of
from busso.command.settings.mistakes import (
    dotted,
    misplaced,
    nearest,
    no_such_choice,
    not_utf8,
    of_other_choice,
    syntax_error,
)
from busso.command.settings.quoting import for_shell, given, hint_for, in_full, key_of, with_escapes
from busso.command.settings.trusted import trust_games, trust_network, trust_players
from busso.command.settings.untrusted import check_values, trust_game, walk

if TYPE_CHECKING:
    from omegaconf import DictConfig

_VALUE = re.compile(r"Value '(.*)' of type '\w+' .* (?:to|hint) '?(Integer|Float|Union\[int, str\])")
_WANTED = {"Integer": "an integer", "Float": "a number", "Union[int, str]": "an integer or a word such as auto"}
# Hydra's answers to `+` and `++` before an existing key.
_THERE_ALREADY = ("Multiple values for", "Could not append to config", "force-add of config groups")
_PLAYERS = {"play": "opponents={}", "tournament": "players=[{},greedy]"}
_PLAYING = ("run", "runs", "agent", "player", "players", "opponent", "opponents")  # that people type for these
_UNKNOWN = "unknown setting with these choices"
T = TypeVar("T")


@runtime_checkable
class SettingsOfAlgorithms(Protocol):
    """Settings of a run: a key that a saved file, or a choice such as rollout=local, lacks has its value in conf/."""

    @classmethod
    def defaults(cls, algo: str) -> dict[str, Any]:
        """Return the values in conf/ for an algorithm, without those chosen for a game."""


def compose(schema: type[T] | Mapping[str, type[T]], config_name: str, overrides: Sequence[str]) -> T:
    """Compose conf/<config_name>.yaml with overrides; a mapping has a schema for each `algo`. Raises SettingsError."""
    overrides = for_schema(schema, [in_full(with_escapes(with_home(each))) for each in overrides])
    with refused_by_name(overrides, config_name):
        return from_config(schema, _composed(config_name, overrides))


def for_schema(
    schema: type[T] | Mapping[str, type[T]], overrides: Sequence[str], default_game: str | None = None
) -> Sequence[str]:
    """Return the overrides for Hydra; consume those that only name a game, network or player of files to be read.

    Text settings stay as typed. With a `default_game`, the game's options need no `game.` prefix. Raises SettingsError
    for a game that does not load.
    """
    own = {field.name for field in fields(schema)} if isinstance(schema, type) else {"game", "algo"}  # type: ignore[arg-type]
    if default_game is not None and overrides and isinstance(schema, type):
        from busso.command.settings.game import with_game_options  # imports NumPy, for which --help does not wait

        overrides = with_game_options(overrides, default_game, schema)
    if isinstance(schema, type) and "network" not in own:  # the network is that of the runs that the command reads
        overrides = [each for each in overrides if not trust_network(each)]
    if "game" not in own:  # the command reads files, which may be of the named game
        overrides = [each for each in overrides if not _names_code(each)]
    trust_games(overrides)  # whose options may be text
    from busso.command.settings.text import as_typed  # imports Hydra, for which `import busso` does not wait

    return as_typed(overrides, *([schema] if isinstance(schema, type) else schema.values()))


def from_config(schema: type[T] | Mapping[str, type[T]], config: DictConfig) -> T:
    """Return the checked settings that Hydra has composed; a mapping has one schema for each `algo`.

    The user has typed them, so the Python files that they name may run. Raises SettingsError.
    """
    from omegaconf import OmegaConf

    trust_players(OmegaConf.to_container(config))
    if not isinstance(schema, type):
        check_one_of("algo", str(config.algo), *schema)
        schema = schema[str(config.algo)]
    return _settings(schema, config)


def _names_code(override: str) -> bool:
    """Name the game, or the Python file of an opponent, for a command that reads runs; return whether it is either."""
    key, _, value = override.partition("=")
    if key == "opponents.only":
        trust_players(value)
    elif override.startswith("game="):
        from busso.command.settings.game import load_configured_game  # imports NumPy, for which --help does not wait

        load_configured_game({"name": trust_game(value)})
    return key == "opponents.only" or override.startswith("game=")


def _composed(config_name: str, overrides: Sequence[str]) -> DictConfig:
    from hydra import compose as hydra_compose
    from hydra import initialize_config_dir
    from hydra.core.global_hydra import GlobalHydra

    running = GlobalHydra.instance().hydra  # of the calling command, if it is one
    GlobalHydra.instance().clear()
    try:
        with initialize_config_dir(str(CONF), version_base="1.3"):
            return hydra_compose(config_name, list(overrides))
    finally:
        GlobalHydra.instance().hydra = running


@contextmanager
def refused_by_name(overrides: Sequence[str], config_name: str = "", of_flags: Sequence[str] = ()) -> Iterator[None]:
    """Raise a SettingsError that names the key for what Hydra or the dataclasses refuse; `of_flags` stand for flags."""
    from hydra.errors import HydraException
    from omegaconf.errors import OmegaConfBaseException

    try:
        with warnings.catch_warnings():
            # Hydra ignores a missing folder of hydra.searchpath, and then fails on the files expected there.
            warnings.filterwarnings("error", r"provider=hydra\.searchpath")
            yield
    except yaml.YAMLError as error:
        raise syntax_error(error) from None
    except (HydraException, OmegaConfBaseException, ValueError, TypeError, UserWarning) as error:
        if _is_bug(error):
            raise
        if isinstance(error, UnicodeDecodeError) and (fault := not_utf8([*of_flags, *overrides])):
            raise fault from None
        found = error if isinstance(error, SettingsError) else _one_line(error)
        found = _not_to_be_added(found, overrides)
        keys = [key_of(override) for override in overrides]
        if config_name and found.problem == _UNKNOWN:
            raise explained(found, [*of_flags, *overrides], config_name) from None
        if found.key in overrides and "=" not in found.key:
            near = nearest(found.key, COMMANDS)
            hint = f"did you mean busso {near}?" if near else "write KEY=VALUE"
            raise SettingsError(found.key, "unknown setting", hint) from None
        if not found.key and len(keys) == 1:  # Hydra may quote only the value
            raise SettingsError(keys[0], found.problem, found.hint) from None
        named = any(key.partition(".")[0] in str(found) for key in keys)
        given = "" if named or not keys else f" (given: {' '.join(overrides)})"
        raise SettingsError(found.key, found.problem + given, found.hint) from None


def _is_bug(error: Exception) -> bool:
    """Return whether code of busso made an error that no command line or file should: Hydra raises plain ones, too."""
    packages = [str(frame.f_globals.get("__name__")).partition(".")[0] for frame, _ in walk_tb(error.__traceback__)]
    raised_by = [each for each in packages if each in ("busso", "hydra", "hydra_plugins", "omegaconf")][-1]
    return raised_by == "busso" and not isinstance(error, InputError | UnicodeDecodeError)


def explained(error: SettingsError, overrides: Sequence[str], config_name: str) -> SettingsError:
    """Return the error, for an unknown setting with the file in which it stands or the nearest key."""
    if error.problem != _UNKNOWN:
        return error
    if fault := misplaced(error.key, overrides) or of_other_choice(error.key, overrides, config_name):
        return fault
    known = (each for each in _known(error.key, config_name, overrides) if each.partition(".")[0] != error.key)
    near = nearest(error.key, known)
    if error.key in _PLAYING and config_name in _PLAYERS:
        typed = given(overrides)[error.key].value or "RUN"
        hint = f"write {for_shell(_PLAYERS[config_name].format(typed.strip('[]')))}"
        return SettingsError(error.key, "unknown setting", f"{hint} for a trained agent")
    hint = f"did you mean {near}?" if near else f"write {error.key}=NAME" if (CONF / error.key).is_dir() else ""
    return SettingsError(error.key, "unknown setting", hint) if hint else error


def _known(key: str, config_name: str, overrides: Sequence[str]) -> Iterator[str]:
    """Yield a command's groups and keys under these overrides, and keys of other choices that end like `key`."""
    from hydra.errors import HydraException
    from omegaconf import OmegaConf

    groups = list(groups_of(CONF / f"{config_name}.yaml"))
    chosen = [each for each in overrides if key_of(each) in (*groups, "hydra.searchpath")]
    try:
        composed = OmegaConf.to_container(_composed(config_name, chosen))
    except HydraException:  # several choices, for a sweep
        composed = OmegaConf.to_container(_composed(config_name, []))
    assert isinstance(composed, dict)
    yield from groups
    yield from dotted(composed)  # type: ignore[arg-type]
    of_groups = (f"{group}.{key.rpartition('.')[2]}" for group in groups)
    yield from filter(choices_with, of_groups)


def _not_to_be_added(error: SettingsError, overrides: Sequence[str]) -> SettingsError:
    """Return the error; for a `+` before an existing key, with the correct override."""
    added = [each for each in overrides if each.startswith("+") and key_of(each) in error.problem]
    if not (added and error.problem.startswith(_THERE_ALREADY)):
        return error
    return SettingsError(key_of(added[0]), "needs no +", f"write {for_shell(added[0].lstrip('+'))}")


def _one_line(error: Exception) -> SettingsError:
    """Return a SettingsError for a multi-line error of Hydra or OmegaConf, with the key if it is named."""
    override = str(getattr(error, "override", None) or "")
    wraps = not str(error) or "override" in str(error).lower()
    cause = error.__cause__ if error.__cause__ is not None and wraps else error
    lines = [line.strip() for line in str(cause).splitlines() if line.strip()]
    text = " ".join(lines[: 2 if lines[0].endswith(":") else 1]) if lines else type(error).__name__
    key = getattr(cause, "full_key", None) or key_of(override)
    if wrong := _of_wrong_type(key, text):
        return wrong
    if choice := re.search(r"Could not find '(.+)/([^/]+)'", text):  # the available choices follow
        return no_such_choice(choice[1], choice[2], lines[1:])
    if text.startswith("Ambiguous value for argument"):
        return _several(text.partition("'")[2].rstrip("'"))
    if "is not in struct" in text or re.match("Key '.*' not in '", text):
        return SettingsError(key, _UNKNOWN, "--cfg job prints all settings")
    if text.startswith("provider=hydra.searchpath"):
        missing = text.partition("path=")[2].removesuffix(" is not available.")
        return SettingsError("hydra.searchpath", f"missing folder {missing}")
    hint = hint_for(override)
    return SettingsError(key, f"Hydra cannot read {override.partition('=')[2]}" if hint else text, hint)


def _several(override: str) -> SettingsError:
    """Return the error for several values without --multirun."""
    from busso.command.settings.text import FileConfigSource  # imports Hydra, for which `import busso` does not wait

    key, _, value = override.partition("=")
    if key in FileConfigSource.lists and not re.search(r"[][(){}]", value):
        return SettingsError(key, "expected a list", f"write {for_shell(f'{key}=[{value}]')}")
    hint = hint_for(override)
    problem = "several values need --multirun, which runs them all"
    return SettingsError(override, problem, f"for one value {hint}" * bool(hint))


def _of_wrong_type(key: str, text: str) -> SettingsError | None:
    """Return the error for OmegaConf's message about a value of another type; None for other messages."""
    if "is not a ListConfig" in text or "to list" in text.lower():
        return SettingsError(key, "expected a list, such as [a,b]")
    found = _VALUE.match(text)
    if found is None:
        return None
    value, wanted = found[1], found[2]
    whole = re.fullmatch(r"(-?\d+)\.0", value) if wanted != "Float" else None  # 1e5 is a float, not an integer
    return SettingsError(key, f"expected {_WANTED[wanted]}, not {value}", f"write {whole[1]}" if whole else "")


def settings_from_dict(schema: type[T], values: Any) -> T:
    """Return the settings in dictionaries, as in a checkpoint, without interpolation. Raises SettingsError."""
    check_values(values)
    return _settings(schema, values)


@cache  # `merge` copies it, and reading the types of all fields is the slowest part
def _structured(schema: Hashable, algo: str) -> Any:
    from omegaconf import OmegaConf

    types = OmegaConf.structured(schema)
    return OmegaConf.merge(types, schema.defaults(algo)) if isinstance(schema, SettingsOfAlgorithms) else types


def _settings(schema: type[T], values: Any) -> T:
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException

    try:
        if OmegaConf.is_config(values):
            values = _with_homes(OmegaConf.to_container(values, resolve=True))
        algo = str(values.get("algo", "")) if isinstance(values, Mapping) else ""
        settings = OmegaConf.to_object(OmegaConf.merge(_structured(cast("Hashable", schema), algo), values))
    except SettingsError:
        raise
    except OverflowError:  # an integer too large for a float; OmegaConf does not say which
        raise SettingsError(_beyond_floats(values), "the number is too large") from None
    except (OmegaConfBaseException, ValueError, TypeError) as error:
        if _is_bug(error):
            raise
        raise _one_line(error) from None
    assert isinstance(settings, schema)
    return settings


def _with_homes(values: Any) -> Any:
    """Expand `~` in every string of nested dictionaries and lists."""
    if isinstance(values, dict):
        return {name: _with_homes(value) for name, value in values.items()}
    if isinstance(values, list):
        return [_with_homes(value) for value in values]
    return with_home(values) if isinstance(values, str) else values


def _beyond_floats(values: Any) -> str:
    """Return the dotted name of an integer that no float can hold, without its place in a list."""
    beyond = (key for key, value, _ in walk(values) if isinstance(value, int) and abs(value) > sys.float_info.max)
    return re.sub(r"\.\d+$", "", next(beyond, ""))


def as_yaml(settings: Any) -> str:
    """Return the settings as YAML, in the order of their definition."""
    return yaml.safe_dump(asdict(settings), sort_keys=False)
