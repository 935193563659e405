"""`python -m train [key=value ...]`: train a run, or go on with it. `python -m train doctor`: look before you do."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from functools import partial
from typing import TYPE_CHECKING

from train.run.signals import hold_usr1

if __name__ == "__main__":
    hold_usr1()  # before the imports that take seconds, here and in the functions

from command.settings.checks import SettingsError
from command.settings.compose import as_yaml
from command.settings.line import parse, run_command
from train.run.device import gpu_names, other_gpus, this_machine
from train.settings.batch_q import BatchQSettings
from train.settings.dqn import TrainSettings
from train.settings.resolve import Chosen, at_the_door
from train.settings.tabular import TabularSettings

if TYPE_CHECKING:
    import torch

    from train.dqn.rollout.backend import RolloutBackend
    from train.run.folder import RunFolder
    from train.run.runner import Judge, Trainer
    from train.settings.algorithms import AnyRunSettings

log = logging.getLogger("train")
EXAMPLE = "python -m train game=spike minutes=3 name=short"


def main(arguments: Sequence[str]) -> int:
    """Run the command line; returns the exit code."""
    return run_command(_main, arguments)


def _main(arguments: Sequence[str]) -> int:
    if arguments[:1] == ["doctor"]:
        return examine(arguments[1:])
    options = parse("python -m train", "train", arguments, EXAMPLE, multirun=True)
    if options.multirun:
        from train.multirun import multirun

        if options.print_config:
            return multirun([*options.overrides, "jobs=1"], _print_one_of_many)
        return multirun(options.overrides, train)
    chosen = at_the_door(options.overrides, this_machine())
    return _print_settings(chosen) if options.print_config else train(chosen)


def _print_settings(chosen: Chosen) -> int:
    from train.dqn.warm_start import with_shape_of_start

    chosen = with_shape_of_start(chosen)
    print("".join(f"# {note}\n" for note in chosen.notes) + as_yaml(chosen.settings), end="")
    return 0


def _print_one_of_many(chosen: Chosen) -> int:
    print("---")  # a document of YAML for each run
    return _print_settings(chosen)


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
    with RunFolder(settings) as folder, logged(folder.path):
        for note in chosen.notes:
            log.info(note)
        return run(partial(open_trainer, settings, folder), folder, judge)


def examine(arguments: Sequence[str]) -> int:
    """`python -m train doctor`: say what a run would get. Returns 0 if it would start, else 2."""
    options = parse("python -m train doctor", "train", arguments, EXAMPLE.replace("train", "train doctor"))
    from command.terminal.console import result_console
    from command.terminal.progress import Progress
    from train.doctor import measure as stages
    from train.doctor import report as doctor
    from train.dqn.players.load import check_players
    from train.dqn.warm_start import with_shape_of_start

    settings = with_shape_of_start(at_the_door(options.overrides, this_machine())).settings
    if not isinstance(settings, TrainSettings):
        raise SettingsError(
            "doctor", f"looks at runs of algo=dqn, not of {settings.algo}, which need one CPU and no Ray"
        )
    check_players(settings)
    with Progress("measuring", None):
        findings = doctor.examine(settings)
        starts = doctor.would_start(findings)
        measured = stages.measure(settings) if starts else None
    for table in doctor.screen(findings, measured):
        result_console().print(table)
    return 0 if starts else 2


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

        from train.doctor.job_memory import check_job_memory
        from train.dqn.trainer import Trainer as DqnTrainer
        from train.run.gpu_failures import device_of_run
        from train.run.metrics import resources

        torch.set_num_threads(settings.learner.threads)
        device = device_of_run(settings.device, folder.path)
        if device.type == "cuda":
            look_at_gpus(settings, device)
        else:
            check_job_memory(settings, resources.memory())
        with closing(make_backend(settings, device)) as rollouts:  # first: Ray starts while the checkpoint is read
            yield DqnTrainer(settings, folder, device, rollouts)


def look_at_gpus(settings: TrainSettings, device: torch.device) -> None:
    """Say which of several is used. Raises SettingsError if the run will not fit into it."""
    import torch

    from train.doctor.gpu_memory import check_gpu_memory

    index = device.index or 0
    if line := other_gpus(settings.device, gpu_names(), index):
        log.warning(line)
    check_gpu_memory(settings, torch.cuda.mem_get_info(device)[0], f"cuda:{index}")


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


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
