"""Training functions: a run from its settings, its trainer and its players."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from busso.train.settings.dqn import TrainSettings
from busso.train.settings.tabular import BatchQSettings, TabularSettings

if TYPE_CHECKING:
    import torch

    from busso.train.rollout.backend import RolloutBackend
    from busso.train.run.folder import RunFolder
    from busso.train.run.runner import Judge, Trainer
    from busso.train.settings.resolve import PreparedRun, ResolvedSettings

log = logging.getLogger("train")


def train(run: PreparedRun, judge: Judge | None = None) -> int:
    """Start or resume a run; return the exit code, which is 0 also if the judge gave up the run. Raises UserError."""
    from busso.train.run.folder import RunFolder
    from busso.train.run.log_file import logged
    from busso.train.run.runner import start

    with RunFolder(run.settings, run.composed) as folder, logged(folder.path):
        for note in run.notes:
            log.info(note)
        if divisor := run.settings.game.get("reward_scale"):
            line = f"the reward result is divided by game.reward_scale={divisor:g}, the most that trial games paid"
            log.info(line)
            print(line, file=sys.stderr)
        return start(partial(open_trainer, run, folder), folder, judge)


def prepare_run(chosen: ResolvedSettings) -> PreparedRun:
    """Complete the settings by the run's latest start and initial network; try its code and load all its players.

    Writes nothing. Raises UserError.
    """
    from busso.train.network.build import with_tried_code
    from busso.train.players.trained import check_players
    from busso.train.settings.resolve import PreparedRun, latest_settings, with_settings_of_begun
    from busso.train.warm_start import with_shape_of_start

    begun = latest_settings(chosen.settings)
    chosen = with_shape_of_start(with_settings_of_begun(chosen, begun), begun)
    if not isinstance(chosen.settings, TrainSettings):
        return PreparedRun(chosen.settings, chosen.notes)
    settings = with_tried_code(chosen.settings)
    return PreparedRun(settings, chosen.notes, check_players(settings))


@contextmanager
def open_trainer(run: PreparedRun, folder: RunFolder) -> Iterator[Trainer]:
    """Yield the trainer of the run, with its backend until the context ends."""
    settings = run.settings
    if isinstance(settings, BatchQSettings):
        from busso.train.tabular.batch_q import BatchQTrainer

        yield BatchQTrainer(settings, folder)
    elif isinstance(settings, TabularSettings):
        from busso.train.tabular.trainer import TabularTrainer

        yield TabularTrainer(settings, folder)
    else:
        import torch

        from busso.train.learner.learner import keep_compiled_code, with_one_if_forked
        from busso.train.run.device import choose_device
        from busso.train.run.launches import began_on_gpu
        from busso.train.trainer import DqnTrainer

        keep_compiled_code()
        settings = with_one_if_forked(settings)
        torch.set_num_threads(settings.learner.cpu_threads)
        device = choose_device(settings.device, began_on_gpu(folder.path))
        settings = checked(replace(settings, device=str(device)), device)
        with closing(make_backend(settings, device)) as rollouts:  # first, as Ray starts while the checkpoint is read
            yield DqnTrainer(settings, folder, device, rollouts, run.files)


def checked(settings: TrainSettings, device: torch.device) -> TrainSettings:
    """Set the number of threads of a learner on CPUs. Raises SettingsError if the run does not fit into memory."""
    import torch

    from busso.base import system
    from busso.train.doctor.memory import check_gpu_memory, check_job_memory
    from busso.train.learner.learner import with_learner_threads

    on_gpu = device.type == "cuda"
    check_job_memory(settings, system.memory(), on_gpu)
    if on_gpu:
        check_gpu_memory(settings, torch.cuda.mem_get_info(device)[0], f"cuda:{device.index or 0}")
        return settings
    settings = with_learner_threads(settings)
    torch.set_num_threads(settings.learner.cpu_threads)
    return settings


def make_backend(settings: TrainSettings, device: torch.device) -> RolloutBackend:
    """Return a local backend on the learner's device, or the Ray backend, which does not import Ray here."""
    if settings.rollout.kind == "local":
        from busso.train.rollout.backend import LocalBackend

        return LocalBackend(settings, device)
    from busso.train.rollout.ray.backend import RayBackend

    return RayBackend(settings)
