"""What a command line means on this machine: which rollouts, and whether the recipe for a GPU is taken.

Decided here, once; whatever comes later reads settings that leave nothing open.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from command.foreign import read_yaml
from command.settings.checks import SettingsError
from train.settings.algorithms import AnyRunSettings, settings_of
from train.settings.dqn import CPU_GAMES, MOST_DECISIONS, RolloutSettings, TrainSettings
from train.settings.saved import changes, value_at

GPU_RECIPE = "gpu"  # conf/experiment/gpu.yaml
BEST_RESPONSE = "best_response"  # another
FINISH = "finish"  # and another
NO_EXPERIMENT = "experiment=null"  # Hydra has no such words: it is what conf/train.yaml says
GAME_OF_RECIPE = "tressette"  # with which it was found: large batches were tried in no other

_WAVES = 50  # of rollouts that are out at a time, at least, in a run of so many episodes


@dataclass(frozen=True)
class Machine:
    """What there is to train on."""

    gpu: bool  # whether `device=auto` is one
    cpus: int

    def learns_on_gpu(self, device: str) -> bool:
        """Whether a learner with this setting of `device` is on a GPU."""
        return self.gpu if device == "auto" else device.startswith("cuda")


@dataclass(frozen=True)
class Chosen:
    """Settings in which nothing is left to the machine, a line on each thing that was, and what was `given`."""

    settings: AnyRunSettings
    notes: tuple[str, ...] = ()
    given: tuple[str, ...] = ()


def at_the_door(overrides: Sequence[str], machine: Machine) -> Chosen:
    """The settings of a command line of `python -m train` on this machine. Raises SettingsError."""
    given, overrides = overrides, [each for each in overrides if each != NO_EXPERIMENT]
    settings = settings_of(overrides)
    if not isinstance(settings, TrainSettings):
        return Chosen(settings, given=tuple(given))
    settings, recipe = (settings, ()) if _names_a_recipe(given) else _with_gpu_recipe(overrides, settings, machine)
    settings = _against(overrides, settings)
    if f"experiment={FINISH}" in overrides and settings.network.start is None:
        raise SettingsError("network.start", f"experiment={FINISH} goes on with a network", "say network.start=RUN")
    rollout, why = _rollout(settings, machine)
    return Chosen(replace(settings, rollout=rollout), (*recipe, *why), tuple(given))


def _against(overrides: Sequence[str], settings: TrainSettings) -> TrainSettings:
    """The settings of a run that learns against one player: it is measured by what it wins of that player.

    Another experiment may say otherwise, and so may the command line. Raises SettingsError for a `behaviour` besides.
    """
    against_one = f"experiment={BEST_RESPONSE}" in overrides
    if settings.opponent is None:
        if against_one:
            raise SettingsError("opponent", f"experiment={BEST_RESPONSE} needs one player", "say opponent=PLAYER")
        return settings
    given = {each.lstrip("+~").partition("=")[0].partition("@")[0] for each in overrides}
    if any(key.partition("[")[0].partition(".")[0] == "behaviour" for key in given):
        other = f"opponent={settings.opponent}, which sits in all seats of the other sides"
        raise SettingsError("behaviour", f"says who sits where, and so does {other}", "leave one out")
    if "evaluation.opponents" in given or ("experiment" in given and not against_one):
        return settings
    best_by = settings.evaluation.best_by if "evaluation.best_by" in given else "result"
    return replace(settings, evaluation=replace(settings.evaluation, opponents=[settings.opponent], best_by=best_by))


def _with_gpu_recipe(
    overrides: Sequence[str], plain: TrainSettings, machine: Machine
) -> tuple[TrainSettings, tuple[str, ...]]:
    """The settings with the recipe for a GPU where it is to be taken, and why.

    A run that was begun goes on with what it began with, also on another machine.
    """
    if plain.game_name != GAME_OF_RECIPE:
        return plain, ()
    begun, gpu = settings_of_run(plain.folder), machine.learns_on_gpu(plain.device)
    by_threads = gpu and (plain.rollout.kind != "auto" or _kind(plain.rollout, gpu)[0] == "threads")
    if not (begun or by_threads):
        return plain, ()
    with_it = settings_of([f"experiment={GPU_RECIPE}", *overrides])
    assert isinstance(with_it, TrainSettings)
    with_it = replace(with_it, name=plain.name)
    if begun and not _is_nearer(begun, with_it, plain):
        return plain, ()
    why = "the run began with it" if begun else "the learner has a GPU"
    return with_it, (f"experiment={GPU_RECIPE}: {why}; {NO_EXPERIMENT} is without it, in a run with another name=...",)


def _names_a_recipe(overrides: Sequence[str]) -> bool:
    return bool(
        {each.lstrip("+~").partition("=")[0].partition("@")[0] for each in overrides} & {"experiment", "rollout"}
    )


def settings_of_run(folder: Path) -> dict[str, Any]:
    """What a run that has learned something was last started with; empty if there is none, or they cannot be read."""
    path = folder / "config.yaml"
    if not (path.exists() and any((folder / "checkpoints").glob("episode_*.pt"))):
        return {}
    try:
        stored = read_yaml(path.read_text())
    except ValueError:
        return {}  # those in the checkpoint are compared later
    return stored if isinstance(stored, dict) else {}


def _is_nearer(stored: dict[str, Any], one: TrainSettings, other: TrainSettings) -> bool:
    """Whether `one` has more of the stored values than `other`."""
    differing = changes(asdict(one), asdict(other))
    agree = [sum(value_at(stored, key) == values[side] for key, values in differing.items()) for side in (0, 1)]
    return agree[0] > agree[1]


def _rollout(settings: TrainSettings, machine: Machine) -> tuple[RolloutSettings, tuple[str, ...]]:
    """Rollouts of a kind that is not `auto`, with as many games and blocks as there will be, and why."""
    rollout, on_gpu = settings.rollout, machine.learns_on_gpu(settings.device)
    notes: tuple[str, ...] = ()
    if rollout.kind == "auto":
        kind, why = _kind(rollout, on_gpu)
        rollout, notes = replace(rollout, kind=kind), (f"rollout=auto: {kind}, since {why}",)
    if rollout.kind == "threads":
        blocks = rollout.blocks_on(on_gpu, machine.cpus - settings.learner.threads)
        return replace(rollout, blocks=blocks, games=_games(settings, rollout.games_on(on_gpu), blocks)), notes
    if rollout.kind == "device":
        return replace(rollout, games=_games(settings, rollout.games_on_device(), 0)), notes
    return replace(rollout, games=rollout.games_on(gpu=False)), notes


def _games(settings: TrainSettings, most: int, blocks: int) -> int:
    """Games of one rollout, where they are not named: at most what the device likes.

    But so few that the buffer holds what is out at a time, and that of a run of so many episodes not much is played
    before the first update.
    """
    if settings.rollout.games:
        return settings.rollout.games
    out = blocks + 2
    games = min(most, settings.replay.capacity // (MOST_DECISIONS * out))
    if settings.episodes:
        games = min(games, settings.episodes // (_WAVES * out))
    return max(min(most, CPU_GAMES), games)


def _kind(rollout: RolloutSettings, on_gpu: bool) -> tuple[str, str]:
    """Which kind `auto` is, and why."""
    of_ray = [f"rollout.{name}" for name in ("workers", "gpus_per_worker") if getattr(rollout, name)]
    of_ray += ["rollout.threads"] if rollout.threads > 1 else []
    of_ray += ["rollout.dashboard"] if rollout.dashboard else []
    if of_ray and rollout.blocks:
        raise SettingsError(
            of_ray[0], "is of Ray, rollout.blocks of threads", "leave one out, or say rollout=ray or rollout=threads"
        )
    if of_ray or rollout.blocks:
        return ("ray", f"{of_ray[0]} is given") if of_ray else ("threads", "rollout.blocks is given")
    if os.environ.get("RAY_ADDRESS"):
        return "ray", "RAY_ADDRESS names a cluster"
    if rollout.nodes > 1:
        return "ray", "the run is on several nodes"
    return ("threads", "the learner has a GPU, on one node") if on_gpu else ("ray", "the learner has no GPU")
