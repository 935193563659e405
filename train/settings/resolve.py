"""Resolution of a `busso train` command line into settings; settings as nested dictionaries, and their differences."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

from busso.base import own_files
from busso.cards.packages import REWARD_SCALE, typed_game
from busso.command.conf_folder import choices_with, value_at
from busso.command.settings.checks import SettingsError
from busso.command.settings.compose import compose, settings_from_dict
from busso.command.settings.quoting import Override, assigned, given
from busso.command.settings.untrusted import read_yaml
from busso.train.settings.dqn import OF_BUSSOS_NETWORKS, TrainSettings, targets_of
from busso.train.settings.run import BUDGET_KEYS, CHECKPOINTS, MACHINE_KEYS, RunSettings
from busso.train.settings.tabular import BatchQSettings, TabularSettings

AnyRunSettings = TrainSettings | BatchQSettings | TabularSettings
S = TypeVar("S", bound=RunSettings)
_KINDS: tuple[type[AnyRunSettings], ...] = (TrainSettings, BatchQSettings, TabularSettings)
SCHEMAS = {algo: kind for kind in _KINDS for algo in kind.ALGORITHMS}
CONFIG = "config.yaml"  # in a run folder: settings of its latest start
BEST_RESPONSE = "best_response"  # conf/experiment/best_response.yaml
_EVALUATED = "evaluation.opponents"
_OF_ALL = ("experiment", "row", "recipe", "search")  # choices that set keys of any group
_NEEDED = {BEST_RESPONSE: "opponents.only", "fine_tune": "network.init_from"}  # key required by an experiment


def changes(old: dict[str, Any], new: dict[str, Any], prefix: str = "") -> dict[str, tuple[Any, Any]]:
    """Return the dotted keys in both dictionaries whose values differ, with the two values.

    If the kind of `target` differs, it is returned with the keys that differ from the new kind's defaults.
    """
    found: dict[str, tuple[Any, Any]] = {}
    for key in sorted(old.keys() & new.keys()):
        a, b = old[key], new[key]
        if key == "target" and value_at(a, "kind") != (kind := value_at(b, "kind")):
            found |= {prefix + key: (value_at(a, "kind"), kind)}
            found |= changes(asdict(targets_of({"kind": kind})), b, f"{prefix}{key}.")
        elif isinstance(a, dict) and isinstance(b, dict):
            found |= changes(a, b, f"{prefix}{key}.")
        elif a != b:
            found[prefix + key] = (a, b)
    return found


@dataclass(frozen=True)
class ResolvedSettings:
    """Settings of a run, notes on them for the log, and the overrides `given`."""

    settings: AnyRunSettings
    notes: tuple[str, ...] = ()
    given: tuple[str, ...] = ()


@dataclass(frozen=True)
class PreparedRun:
    """Settings of a run after all checks: completed by its latest start, its code tried, its players loaded."""

    settings: AnyRunSettings
    notes: tuple[str, ...] = ()  # for the log
    files: Mapping[str, str] = field(default_factory=dict)  # sha256 of players in files that it learns with, by name
    composed: Mapping[str, str] = field(default_factory=dict)  # Hydra's files for `.hydra/`, by name


def settings_of(overrides: Sequence[str]) -> AnyRunSettings:
    """Return the settings of a command line, independent of the machine. Raises SettingsError."""
    return compose(SCHEMAS, "train", overrides)


def defaults_of(settings: AnyRunSettings, *groups: str) -> AnyRunSettings | None:
    """Return the default settings of this game and algorithm, with choices `groups` such as target=target_network.

    Returns None if the game's settings are not found. With a network of the user's own, they have no shape.
    """
    try:
        plain = settings_of([f"game={typed_game(settings.game_name)}", f"algo={settings.algo}", *groups])
    except SettingsError:
        return None
    if isinstance(plain, TrainSettings) and isinstance(settings, TrainSettings) and settings.network.module:
        plain = replace(plain, network=replace(plain.network, module=settings.network.module))
        plain.network.module = None
    return plain


def resolve(overrides: Sequence[str]) -> ResolvedSettings:
    """Return the settings of a `busso train` command line. Raises SettingsError."""
    return chosen_of(settings_of(overrides), overrides)


def chosen_of(settings: AnyRunSettings, overrides: Sequence[str]) -> ResolvedSettings:
    """Return the settings, adjusted to the `overrides` typed. Raises SettingsError."""
    named = given(overrides)
    experiment = named["experiment"].value if "experiment" in named else None
    if "dir" in named:
        raise SettingsError("dir", "follows from Hydra's folder", "use hydra.run.dir=FOLDER")
    if (key := _NEEDED.get(experiment or "")) and key not in named:
        raise SettingsError(key, f"required by experiment={experiment}", f"set {key}=...")
    if not isinstance(settings, TrainSettings):
        return ResolvedSettings(settings, given=tuple(overrides))
    for key, code in (("network.module", settings.network.module), ("learner.loss", settings.learner.loss)):
        words = own_files.parted(code or "")
        if key in named and words and own_files.find(words[0]) is None:
            raise SettingsError(key, f"file not found: {words[0]}")
    if settings.network.module is not None and (typed := [key for key in OF_BUSSOS_NETWORKS if key in named]):
        problem = f"is for busso's own networks, not for {settings.network.module}"
        raise SettingsError(typed[0], problem, "leave out either it or network=")
    return ResolvedSettings(_measured_against_opponent(settings, named, experiment), given=tuple(overrides))


def _measured_against_opponent(
    settings: TrainSettings, named: Mapping[str, Override], experiment: str | None
) -> TrainSettings:
    """Return the settings; a run that learns against one player is evaluated by its result against that player.

    Another experiment or the command line may override this. Raises SettingsError if `opponents.phases` is set too.
    """
    only = settings.opponents.only
    if only is None:
        return settings
    if any(key.startswith("opponents.phases") for key in named):
        other = f"opponents.only={only}, which sits in all seats of the other sides"
        raise SettingsError("opponents.phases", f"names the opponents, as does {other}", "leave one out")
    if _EVALUATED in named or experiment not in (None, BEST_RESPONSE):
        return settings
    best_metric = settings.evaluation.best_metric if "evaluation.best_metric" in named else "result"
    return replace(settings, evaluation=replace(settings.evaluation, opponents=[only], best_metric=best_metric))


def with_settings_of_begun(chosen: ResolvedSettings, begun: AnyRunSettings | None) -> ResolvedSettings:
    """Return the settings `begun` of the run's latest start, if any, updated with typed settings and the machine's.

    Typed groups and the budget are taken as a whole. Raises SettingsError.
    """
    typed = given(chosen.given).keys()
    if begun is None or not typed.isdisjoint(_OF_ALL):
        return chosen  # the composed settings apply, and are compared when the run is resumed
    now, kept = asdict(chosen.settings), asdict(begun)
    for key in (*MACHINE_KEYS, *typed, *(() if typed.isdisjoint(BUDGET_KEYS) else BUDGET_KEYS)):
        _take(kept, now, key)
    kept["game"] = {key: value for key, value in kept["game"].items() if key != REWARD_SCALE or key in begun.game}
    if f"game.{REWARD_SCALE}" not in typed and REWARD_SCALE in begun.game:
        kept["game"][REWARD_SCALE] = begun.game[REWARD_SCALE]  # the file may have changed since
    settings = settings_from_dict(type(begun), kept)
    other = [assigned(key, value) for key, (_, value) in changes(now, asdict(settings)).items()]
    notes = (f"as it was started: {' '.join(other)}",) if other else ()
    return replace(chosen, settings=settings, notes=(*chosen.notes, *notes))


def latest_settings(settings: S) -> S | None:
    """Return the settings of the latest start of this run, None if it has not begun or is another run.

    Raises SettingsError if the file has other content.
    """
    begun, now = settings_of_run(settings.folder), asdict(settings)
    if any(value_at(begun, key) != value_at(now, key) for key in ("algo", "game.name")):
        return None
    try:
        return settings_from_dict(type(settings), begun)
    except SettingsError as error:
        file = settings.folder / CONFIG
        raise SettingsError(file, f"not the settings of a run ({error})", "start another with name=...") from None


def _take(into: dict[str, Any], settings: Mapping[str, Any], key: str) -> None:
    """Copy the value of a key, or its whole group if that is of a kind without the key."""
    group, _, name = key.partition(".")
    theirs, own = settings.get(group), into.get(group)
    if isinstance(theirs, dict) and isinstance(own, dict) and name in theirs:
        kind = own.get("kind")
        alike = kind == theirs.get("kind") or f"{group}={kind}" in choices_with(key)
        into[group] = own | {name: theirs[name]} if alike else theirs
    elif key in settings:
        into[key] = settings[key]


def settings_of_run(folder: Path) -> dict[str, Any]:
    """Return the settings of the latest start of a run with checkpoints; empty without one, or on a read error."""
    path = folder / CONFIG
    if not (path.exists() and CHECKPOINTS.newest_first(folder / "checkpoints")):
        return {}
    try:
        stored = read_yaml(path.read_text(encoding="utf-8"))
    except ValueError:
        return {}  # the checkpoint's settings are compared later
    return stored if isinstance(stored, dict) else {}
