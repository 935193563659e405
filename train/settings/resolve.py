"""What a command line of `python -m train` means on this machine: settings that leave nothing open."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from command.settings.checks import SettingsError
from command.settings.compose import compose
from command.settings.foreign import read_yaml
from command.settings.old_keys import upgraded
from command.settings.overrides import Override, given
from train.settings.batch_q import BATCH_Q_LEARNING, BatchQSettings
from train.settings.dqn import CPU_GAMES, MOST_DECISIONS, RolloutSettings, TrainSettings
from train.settings.tabular import ALGORITHMS, TabularSettings

AnyRunSettings = TrainSettings | BatchQSettings | TabularSettings
SCHEMAS: dict[str, type[AnyRunSettings]] = {
    "dqn": TrainSettings,
    BATCH_Q_LEARNING: BatchQSettings,
    **dict.fromkeys(ALGORITHMS, TabularSettings),
}
BEST_RESPONSE = "best_response"  # conf/experiment/best_response.yaml
_NEEDED = {BEST_RESPONSE: "opponents.only", "fine_tune": "network.init_from"}  # by an experiment

_WAVES = 50  # of rollouts that are out at a time, at least, in a run of so many episodes


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
    """Settings in which nothing is left to the machine, a line on each thing that was, and what was `given`."""

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
    settings = settings_of(overrides)
    if not isinstance(settings, TrainSettings):
        return Chosen(settings, given=tuple(overrides))
    settings = _measured_against_opponent(settings, named, experiment)
    rollout, notes = _rollout(settings, machine)
    return Chosen(replace(settings, rollout=rollout), notes, tuple(overrides))


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
        raise SettingsError("opponents.phases", f"says who sits where, and so does {other}", "leave one out")
    if "evaluation.opponents" in named or experiment not in (None, BEST_RESPONSE):
        return settings
    best_metric = settings.evaluation.best_metric if "evaluation.best_metric" in named else "result"
    return replace(settings, evaluation=replace(settings.evaluation, opponents=[only], best_metric=best_metric))


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


def _rollout(settings: TrainSettings, machine: Machine) -> tuple[RolloutSettings, tuple[str, ...]]:
    """Rollouts of a kind that is not `auto`, with the number of games and threads, and why."""
    rollout, on_gpu = settings.rollout, machine.learns_on_gpu(settings.device)
    notes: tuple[str, ...] = ()
    if rollout.kind == "auto":
        kind, why = _kind(rollout, on_gpu)
        rollout, notes = replace(rollout, kind=kind), (f"rollout=auto: {kind}, since {why}",)
    if rollout.kind == "threads":
        threads = rollout.actor_threads_on(on_gpu, machine.cpus - settings.learner.threads)
        return replace(rollout, actor_threads=threads, games=_games(settings, rollout.games_on(on_gpu), threads)), notes
    if rollout.kind == "device":
        return replace(rollout, games=_games(settings, rollout.games_on_device(), 0)), notes
    return replace(rollout, games=rollout.games_on(gpu=False)), notes


def _games(settings: TrainSettings, most: int, threads: int) -> int:
    """Games of one rollout, where they are not named: at most what the device likes.

    But so few that the buffer holds what is out at a time, and that of a run of so many episodes not much is played
    before the first update.
    """
    if settings.rollout.games:
        return settings.rollout.games
    out = threads + 2
    games = min(most, settings.replay.capacity // (MOST_DECISIONS * out))
    if settings.episodes:
        games = min(games, settings.episodes // (_WAVES * out))
    return max(min(most, CPU_GAMES), games)


def _kind(rollout: RolloutSettings, on_gpu: bool) -> tuple[str, str]:
    """Which kind `auto` is, and why."""
    of_ray = [f"rollout.{name}" for name in ("workers", "gpus_per_worker") if getattr(rollout, name)]
    of_ray += ["rollout.torch_threads"] if rollout.torch_threads > 1 else []
    of_ray += ["rollout.dashboard"] if rollout.dashboard else []
    if of_ray and rollout.actor_threads:
        raise SettingsError(
            of_ray[0],
            "is of Ray, rollout.actor_threads of threads",
            "leave one out, or say rollout=ray or rollout=threads",
        )
    if of_ray or rollout.actor_threads:
        return ("ray", f"{of_ray[0]} is given") if of_ray else ("threads", "rollout.actor_threads is given")
    if os.environ.get("RAY_ADDRESS"):
        return "ray", "RAY_ADDRESS names a cluster"
    if rollout.nodes > 1:
        return "ray", "the run is on several nodes"
    return ("threads", "the learner has a GPU, on one node") if on_gpu else ("ray", "the learner has no GPU")
