"""`python -m train [key=value ...]`: train a run, or go on with it. `python -m train doctor`: look before you do."""

from __future__ import annotations

import logging
import signal
import sys
from collections.abc import Callable, Sequence
from contextlib import closing

from train.run.signals import StopRequest, hold_usr1

if __name__ == "__main__":
    hold_usr1()  # before the imports that take seconds

import torch

from cards.duplicate import meaning_of_won
from command.checks import SettingsError
from command.compose import as_yaml
from command.console import result_console
from command.line import parse, run_command
from train.dqn.rollout import BackendLostError, Evaluator, LocalBackend, RolloutBackend
from train.dqn.trainer import Trainer
from train.run import checkpoint, results
from train.run.checkpoint import CheckpointError
from train.run.device import choose_device
from train.run.folder import RunFolder
from train.run.metrics import logged
from train.run.progress import Display, results_table
from train.settings.algorithms import settings_of
from train.settings.batch_q import BatchQSettings
from train.settings.dqn import TrainSettings
from train.settings.tabular import TabularSettings
from train.tabular.batch_q_trainer import learn_in_batches
from train.tabular.trainer import train_table

log = logging.getLogger("train")

IDLE_STARTS = 2  # in a row; then the same job again would do no better


def main(arguments: Sequence[str]) -> int:
    """Run the command line; returns the exit code."""
    return run_command(_main, arguments)


def _main(arguments: Sequence[str]) -> int:
    if arguments[:1] == ["doctor"]:
        return examine(arguments[1:])
    options = parse("python -m train", "train", arguments)
    settings = settings_of(options.overrides)
    if options.print_config:
        print(as_yaml(settings), end="")
        return 0
    with RunFolder(settings) as folder, logged(folder.path):
        if isinstance(settings, BatchQSettings):
            return learn_in_batches(settings, folder)
        return train_table(settings, folder) if isinstance(settings, TabularSettings) else train(settings, folder)


def examine(arguments: Sequence[str]) -> int:
    """`python -m train doctor`: say what a run would get. Returns 0 if it would start, else 2."""
    from train import doctor

    options = parse("python -m train doctor", "train", arguments)
    settings = settings_of(options.overrides)
    if not isinstance(settings, TrainSettings):
        raise SettingsError(f"doctor: looks at runs of algo=dqn, not of {settings.algo}, which need one CPU and no Ray")
    findings = doctor.examine(settings)
    starts = doctor.would_start(findings)
    for table in doctor.screen(findings, doctor.rates(settings) if starts else []):
        result_console().print(table)
    return 0 if starts else 2


def train(settings: TrainSettings, folder: RunFolder) -> int:
    """Train in the folder until the budget is spent or a signal comes, then say where it stands."""
    torch.set_num_threads(settings.learner.threads)
    device = choose_device(settings.device)
    with StopRequest() as stop:  # to the very end: a signal that nobody handles would end the process without a word
        with closing(make_backend(settings, device)) as rollouts:  # first: Ray starts while the checkpoint is read
            trainer = Trainer(settings, folder, device)
            if trainer.complete():
                print(f"{settings.folder} is complete: raise episodes or minutes to go on with it", file=sys.stderr)
                finished = True
            else:
                finished = _run(trainer, rollouts, device, lambda: stop.signal is not None)
        if not finished:
            return _interrupted(trainer, stop)
        _report(settings, folder, device)
    return 0


def _run(trainer: Trainer, rollouts: RolloutBackend, device: torch.device, stop_requested: Callable[[], bool]) -> bool:
    """Train; returns whether the run is complete. Raises BackendLostError."""
    settings = trainer.settings
    try:
        with Display(f"{settings.game_name}/{settings.name}") as display:
            _greet(trainer, display, device)
            return trainer.run(rollouts, display, stop_requested)
    except BackendLostError as error:
        if trainer.counters.idle_starts < IDLE_STARTS:
            raise
        hopeless = BackendLostError(f"{error}; but this start got nowhere, nor would the next")
        hopeless.exit_code = 1
        raise hopeless from None


def make_backend(settings: TrainSettings, device: torch.device) -> RolloutBackend:
    """Local rollouts on the learner's device, or Ray's, which need no Ray in this process."""
    if settings.rollout.kind == "local":
        return LocalBackend(settings, device)
    from train.dqn.cluster.rollouts import RayBackend

    return RayBackend(settings)


def _greet(trainer: Trainer, display: Display, device: torch.device) -> None:
    settings = trainer.settings
    where = torch.cuda.get_device_name(device) if device.type == "cuda" else "CPU"
    dtype = str(trainer.learner.precision).removeprefix("torch.")
    display.say(f"run {settings.folder}, learner on {where} in {dtype}")
    if trainer.resumed_from is not None:
        counters = trainer.counters
        display.say(
            f"resumed from {trainer.resumed_from}: {counters.episodes:,} episodes, {trainer.learner.updates:,} updates"
        )
    display.say(f"watch it: tensorboard --logdir {settings.runs}")


def _interrupted(trainer: Trainer, stop: StopRequest) -> int:
    name = signal.Signals(stop.signal).name if stop.signal is not None else "a request"
    counters = trainer.counters
    print(
        f"stopped by {name} after {counters.episodes:,} episodes; a checkpoint is in "
        f"{trainer.settings.folder / 'checkpoints'}; the same command goes on from there",
        file=sys.stderr,
    )
    return stop.exit_code(again=counters.idle_starts < IDLE_STARTS)


def _report(settings: TrainSettings, folder: RunFolder, device: torch.device) -> None:
    """The table at the end: the best network on deals that it was not chosen by."""
    if not settings.evaluation.opponents:
        return
    found = checkpoint.load_best(folder.checkpoints)
    if found is None:
        raise CheckpointError(f"{folder.path}: holds no checkpoint")
    for problem in found.problems.values():
        log.warning("%s; %s is shown", problem, found.path)
    deals = settings.evaluation.final_deals
    duels = Evaluator(settings, device).duels(found.state["acting"], "final", deals)
    game = settings.load_game()
    title = f"{settings.folder}, best network, duplicate deals"
    result_console().print(results_table(title, game.unit, duels, meaning_of_won(game)))
    results.write(folder.path, results.of_duels(duels, game.unit))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
