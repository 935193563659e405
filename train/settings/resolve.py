"""The settings of `python -m train` on this machine, with a value in place of each `auto`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from command.settings.checks import SettingsError
from command.settings.compose import compose
from command.settings.foreign import read_yaml
from command.settings.old_keys import upgraded
from command.settings.overrides import Override, given, parsed
from train.settings.batch_q import BATCH_Q_LEARNING, BatchQSettings
from train.settings.dqn import AUTO, AUTO_FLOOR, CPU_GAMES, MOST_DECISIONS, RolloutSettings, TrainSettings
from train.settings.saved import value_at
from train.settings.tabular import ALGORITHMS, TabularSettings

AnyRunSettings = TrainSettings | BatchQSettings | TabularSettings
SCHEMAS: dict[str, type[AnyRunSettings]] = {
    "dqn": TrainSettings,
    BATCH_Q_LEARNING: BatchQSettings,
    **dict.fromkeys(ALGORITHMS, TabularSettings),
}
BEST_RESPONSE = "best_response"  # conf/experiment/best_response.yaml
_NEEDED = {BEST_RESPONSE: "opponents.only", "fine_tune": "network.init_from"}  # by an experiment

_SAMPLES, _FLOOR = "learner.samples_per_insert", "learner.samples_floor"
_OF_LONGER = ("network.hidden", "learner.muon")
_WAVES = 50  # of rollouts that are out at a time, at least, in a run


@dataclass(frozen=True)
class Machine:
    """What there is to train on."""

    gpu: bool | Callable[[], bool]  # whether `device=auto` is one; a function is asked where that decides
    cpus: int

    def learns_on_gpu(self, device: str) -> bool:
        """Whether a learner with this setting of `device` is on a GPU."""
        if device != "auto":
            return device.startswith("cuda")
        return self.gpu() if callable(self.gpu) else self.gpu


@dataclass(frozen=True)
class Chosen:
    """Settings in which nothing is left to the machine, notes on them for the log, and what was `given`."""

    settings: AnyRunSettings
    notes: tuple[str, ...] = ()
    given: tuple[str, ...] = ()


def settings_of(overrides: Sequence[str]) -> AnyRunSettings:
    """The settings of a command line on any machine, by one composition. Raises SettingsError."""
    return compose(SCHEMAS, "train", overrides)


def resolve(overrides: Sequence[str], machine: Machine) -> Chosen:
    """The settings of a command line of `python -m train` on this machine. Raises SettingsError."""
    named = given(overrides)
    experiment = named["experiment"].value if "experiment" in named else None
    if (key := _NEEDED.get(experiment or "")) and key not in named:
        raise SettingsError(key, f"experiment={experiment} needs it", f"say {key}=...")
    floor = [] if _FLOOR in named else [f"{_FLOOR}={AUTO_FLOOR}"]
    plain = [each for each in overrides if not _says_auto(each)]
    settings = settings_of(plain if len(plain) == len(overrides) else [*plain, *floor])
    if not isinstance(settings, TrainSettings):
        return Chosen(settings, given=tuple(overrides))
    settings, notes = _for_longer_runs(_measured_against_opponent(settings, named, experiment), named)
    return Chosen(with_rollout(settings, settings.rollout, machine), notes, tuple(overrides))


def _says_auto(override: str) -> bool:
    """Whether it says `learner.samples_per_insert=auto`: the number of the recipe, which may fall."""
    found = parsed(override)
    return found.key == _SAMPLES and (found.value or "").strip("'\"") == AUTO


def _measured_against_opponent(
    settings: TrainSettings, named: Mapping[str, Override], experiment: str | None
) -> TrainSettings:
    """The settings; those of a run that learns against one player measure it by what it wins of that player.

    Another experiment or the command line may say otherwise. Raises SettingsError for `opponents.phases` besides.
    """
    only = settings.opponents.only
    if only is None:
        return settings
    if any(key.startswith("opponents.phases") for key in named):
        other = f"opponents.only={only}, which sits in all seats of the other sides"
        raise SettingsError("opponents.phases", f"names the opponents, and so does {other}", "leave one out")
    if "evaluation.opponents" in named or experiment not in (None, BEST_RESPONSE):
        return settings
    best_metric = settings.evaluation.best_metric if "evaluation.best_metric" in named else "result"
    return replace(settings, evaluation=replace(settings.evaluation, opponents=[only], best_metric=best_metric))


def _for_longer_runs(settings: TrainSettings, named: Mapping[str, Override]) -> tuple[TrainSettings, tuple[str, ...]]:
    """The settings with those of `longer` for their minutes, and a note where there are such.

    What the command line names stays, and so does what a run that has begun was started with.
    """
    minutes, begun = settings.training_minutes, settings_of_run(settings.folder)
    values = [dict(zip(_OF_LONGER, (step.hidden, step.muon), strict=True)) for step in settings.longer]
    if begun:  # with another budget perhaps
        kept = {key: value_at(begun, key) for key in _OF_LONGER if key not in named}
        return _changed(settings, {key: kept[key] for key in kept if kept[key] in [each[key] for each in values]}), ()
    reached = [k for k, step in enumerate(settings.longer) if minutes is not None and step.minutes <= minutes]
    if not reached:
        return settings, ()
    longest = max(reached, key=lambda k: settings.longer[k].minutes)
    found = {key: value for key, value in values[longest].items() if key not in named}
    said = ", ".join(f"{key}={value}" for key, value in found.items())
    return _changed(settings, found), (f"longer: {said}, since the run has {minutes:g} minutes",) if found else ()


def _changed(settings: TrainSettings, found: Mapping[str, Any]) -> TrainSettings:
    """The settings with these values of keys of `longer`."""
    hidden, muon = (found.get(key) for key in _OF_LONGER)
    network = settings.network if hidden is None else replace(settings.network, hidden=hidden)
    learner = settings.learner if muon is None else replace(settings.learner, muon=muon)
    return replace(settings, network=network, learner=learner)


def settings_of_run(folder: Path) -> dict[str, Any]:
    """What a run that has learned something was last started with; empty if there is none, or they cannot be read."""
    path = folder / "config.yaml"
    if not (path.exists() and any((folder / "checkpoints").glob("episode_*.pt"))):
        return {}
    try:
        stored = read_yaml(path.read_text())
    except ValueError:
        return {}  # those in the checkpoint are compared later
    return upgraded(stored) if isinstance(stored, dict) else {}


def with_rollout(settings: TrainSettings, rollout: RolloutSettings, machine: Machine) -> TrainSettings:
    """The settings with these rollouts: as many games and threads as fit this machine, where they are not named.

    Raises SettingsError where such rollouts cannot play what the settings say.
    """
    most, threads = rollout.games_on(gpu=False), rollout.actor_threads
    if rollout.kind == "threads":
        on_gpu = machine.learns_on_gpu(settings.device)
        playing = rollout.actor_threads_on(on_gpu, machine.cpus - settings.learner.cpu_threads)
        most = _games(settings, rollout, rollout.games_on(on_gpu), playing)
        # Else what the learner leaves, once that was measured; replicas divide the CPUs of their node.
        if settings.learner.replicas == 1 and (on_gpu or settings.learner.threads != AUTO):
            threads = playing
    elif rollout.kind == "device":
        most = _games(settings, rollout, rollout.games_on_device(), 0)
    return replace(settings, rollout=replace(rollout, actor_threads=threads, games=most))


def _games(settings: TrainSettings, rollout: RolloutSettings, most: int, threads: int) -> int:
    """Games of one rollout, where they are not named: at most what the device likes.

    But so few that the buffer holds what is out at a time, and that not much of a run is played
    before the first update.
    """
    if rollout.games:
        return rollout.games
    out = (threads + 2) * settings.learner.replicas
    games = min(most, settings.replay.capacity // (MOST_DECISIONS * out))
    if settings.episodes:
        games = min(games, settings.episodes // (_WAVES * out))
    return max(min(most, CPU_GAMES), games)
