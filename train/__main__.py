"""`python -m train [key=value ...]`: train a run, or resume it. `python -m train doctor`: check the machine first."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from train.run.metrics.resources import wait_passively
from train.run.signals import hold_usr1

if __name__ == "__main__":
    hold_usr1()  # before the imports that take seconds, here and in the functions
    wait_passively()

from command.main import command
from command.settings.checks import SettingsError
from command.settings.compose import as_yaml
from command.settings.line import parse
from train.api import train
from train.run.device import choose_device
from train.settings.dqn import TrainSettings
from train.settings.resolve import Chosen, resolve

EXAMPLE = "python -m train game=spike minutes=3 name=short"


@command
def main(arguments: Sequence[str]) -> int:
    """Run the command line; returns the exit code."""
    if arguments[:1] == ["doctor"]:
        return examine(arguments[1:])
    options = parse("python -m train", "train", arguments, EXAMPLE, multirun=True)
    if options.multirun:
        from train.multirun import multirun

        if options.print_config:
            return multirun([*options.overrides, "jobs=1"], _print_one_of_many)
        return multirun(options.overrides, train)
    chosen = resolve(options.overrides)
    return _print_settings(chosen) if options.print_config else train(chosen)


def _print_settings(chosen: Chosen) -> int:
    from train.dqn.warm_start import with_shape_of_start

    chosen = with_shape_of_start(chosen)
    print("".join(f"# {note}\n" for note in chosen.notes) + as_yaml(chosen.settings), end="")
    return 0


def _print_one_of_many(chosen: Chosen) -> int:
    print("---")  # a document of YAML for each run
    return _print_settings(chosen)


def examine(arguments: Sequence[str]) -> int:
    """`python -m train doctor`: say what a run would get. Returns 0 if it would start, else 2."""
    options = parse("python -m train doctor", "train", arguments, EXAMPLE.replace("train", "train doctor"))
    from command.terminal.console import result_console
    from command.terminal.progress import Progress
    from train.doctor import measure as stages
    from train.doctor import report as doctor
    from train.dqn.learner_threads import with_learner_threads
    from train.dqn.players.load import check_players
    from train.dqn.warm_start import with_shape_of_start

    settings = with_shape_of_start(resolve(options.overrides)).settings
    if not isinstance(settings, TrainSettings):
        raise SettingsError(
            "doctor", f"looks at runs of algo=dqn, not of {settings.algo}, which need one CPU and no Ray"
        )
    check_players(settings)
    with Progress("measuring", None):
        findings = doctor.examine(settings)
        starts = doctor.would_start(findings)
        if starts and choose_device(settings.device).type == "cpu":
            settings = with_learner_threads(settings)
        measured = stages.measure(settings) if starts else None
    for part in doctor.screen(findings, measured):
        result_console().print(part)
    return 0 if starts else 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
