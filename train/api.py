"""Training as functions: a run from its settings, its trainer and its players."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from train.run.device import gpu_names, other_gpus
from train.settings.batch_q import BatchQSettings
from train.settings.dqn import TrainSettings
from train.settings.tabular import TabularSettings

if TYPE_CHECKING:
    import torch

    from train.dqn.rollout.backend import RolloutBackend
    from train.run.folder import RunFolder
    from train.run.runner import Judge, Trainer
    from train.settings.resolve import AnyRunSettings, Chosen

log = logging.getLogger("train")


def train(chosen: Chosen, judge: Judge | None = None) -> int:
    """Start or resume the run that these settings mean; returns the exit code, 0 also where the judge gave it up.

    Raises UserError.
    """
    from train.dqn.players.load import check_players
    from train.dqn.warm_start import with_shape_of_start
    from train.run.folder import RunFolder
    from train.run.metrics.metrics import logged
    from train.run.runner import run

    chosen = with_shape_of_start(chosen)
    settings = chosen.settings
    if isinstance(settings, TrainSettings):
        check_players(settings)
        if settings.learner.replicas > 1:
            from train.dqn.follower import Means, follow_on_node
            from train.dqn.replicas.launch import place_of

            if (place := place_of(settings)).rank:
                return follow_on_node(settings, place, Means(checked, make_backend))
    with RunFolder(settings) as folder, logged(folder.path):
        for note in chosen.notes:
            log.info(note)
        return run(partial(open_trainer, settings, folder), folder, judge)


@contextmanager
def open_trainer(settings: AnyRunSettings, folder: RunFolder) -> Iterator[Trainer]:
    """What learns under these settings, with whatever plays for it until the context ends."""
    if isinstance(settings, BatchQSettings):
        from train.tabular.batch_q_trainer import BatchQTrainer

        yield BatchQTrainer(settings, folder)
    elif isinstance(settings, TabularSettings):
        from train.tabular.trainer import TabularTrainer

        yield TabularTrainer(settings, folder)
    else:
        import torch

        from train.dqn.trainer import DqnTrainer
        from train.run.gpu_failures import device_of_run

        torch.set_num_threads(settings.learner.cpu_threads)
        device = device_of_run(settings.device, folder.path)
        if settings.learner.replicas == 1:
            settings = checked(settings, device, folder)
            with closing(make_backend(settings, device)) as rollouts:  # first: Ray starts while the checkpoint is read
                yield DqnTrainer(settings, folder, device, rollouts)
            return
        from train.dqn.follower import Means, device_of_replica, led
        from train.dqn.replicas.launch import place_of, share_of

        place = place_of(settings)
        device = device_of_replica(device.type, place)
        with led(settings, place, Means(checked, make_backend)) as group:
            settings = checked(settings, device, folder)
            with closing(make_backend(share_of(settings, place, device.type == "cuda"), device)) as rollouts:
                yield DqnTrainer(settings, folder, device, rollouts, group)


def checked(settings: TrainSettings, device: torch.device, folder: RunFolder) -> TrainSettings:
    """The settings without what the device cannot do, and with a number of threads for a learner on CPUs.

    Raises SettingsError if the run will not fit into the memory.
    """
    import torch

    from train.doctor.job_memory import check_job_memory
    from train.dqn.learner_threads import with_learner_threads
    from train.run.metrics import resources

    share = of_node = settings
    if settings.learner.replicas > 1:
        from train.dqn.replicas.launch import place_of, share_of

        place = place_of(settings)
        share = share_of(settings, place, device.type == "cuda")
        of_node = replace(settings, replay=replace(settings.replay, capacity=place.here * share.replay.capacity))
    if device.type == "cuda":
        look_at_gpus(share, device)
        return checked_on_gpu(settings, device, folder)
    check_job_memory(of_node, resources.memory())
    settings = with_learner_threads(settings)
    torch.set_num_threads(settings.learner.cpu_threads)
    return settings


def look_at_gpus(settings: TrainSettings, device: torch.device) -> None:
    """Say which of several is used. Raises SettingsError if the run will not fit into it."""
    import torch

    from train.doctor.gpu_memory import check_gpu_memory

    index = device.index or 0
    if settings.learner.replicas == 1 and (line := other_gpus(settings.device, gpu_names(), index)):
        log.warning(line)
    check_gpu_memory(settings, torch.cuda.mem_get_info(device)[0], f"cuda:{index}")


def checked_on_gpu(settings: TrainSettings, device: torch.device, folder: RunFolder) -> TrainSettings:
    """The settings without what the self-check found at fault. Raises RuntimeError if the GPU itself fails."""
    from train.dqn.kernels.operators import switch_off
    from train.dqn.self_check import log_checks, self_check
    from train.run.gpu_failures import failed_before

    if failed_before(folder.path):  # perhaps by a kernel of ours, which nothing in that process could survive
        switch_off("the GPU failed in the last start")
    settings, checks = self_check(settings, device)
    log_checks(checks)
    return settings


def make_backend(settings: TrainSettings, device: torch.device) -> RolloutBackend:
    """Rollouts in this process with the learner's device, or Ray's, which need no Ray in this process."""
    if settings.rollout.kind == "local":
        from train.dqn.rollout.backend import LocalBackend

        return LocalBackend(settings, device)
    if settings.rollout.kind == "threads" and settings.rollout.nodes == 1:
        from train.dqn.rollout.threads import ThreadsBackend

        return ThreadsBackend(settings, device)
    if settings.rollout.kind == "device":
        from train.dqn.rollout.device.backend import DeviceBackend

        return DeviceBackend(settings, device)
    if settings.rollout.kind == "threads":
        from train.dqn.rollout.threads_and_ray import threads_and_ray

        return threads_and_ray(settings, device)
    from train.dqn.rollout.ray.backend import RayBackend

    return RayBackend(settings)
