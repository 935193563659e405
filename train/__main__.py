"""`busso train [key=value ...]`: train a run, or resume it.

The same command resumes it. `busso doctor` checks the machine first.

example:
  busso train game=spike minutes=3 name=short
"""

import json
import sys
from collections.abc import Sequence

from busso.base.system import wait_passively
from busso.train.run.signals import hold_usr1

if __name__ == "__main__":
    hold_usr1()  # before slow imports, here and in functions
    wait_passively()

from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig

from busso.command.app import job, parted, run_app
from busso.command.main import command
from busso.command.settings.checks import SettingsError
from busso.command.settings.compose import for_schema, from_config
from busso.train.api import prepare_run
from busso.train.app import train
from busso.train.run.device import choose_device
from busso.train.settings.dqn import TrainSettings
from busso.train.settings.resolve import SCHEMAS, chosen_of
from busso.train.sweep import set_up_launchers, until_end


@command
def main(arguments: Sequence[str]) -> int:
    """Run the command line and return the exit code."""
    flags, words = parted(arguments)
    if words[:1] == ["doctor"]:
        return run_app("doctor", examine, [*flags, *for_schema(SCHEMAS, words[1:])])
    set_up_launchers()
    with until_end:
        return run_app("train", train, [*flags, *for_schema(SCHEMAS, words)])


@job
def examine(config: DictConfig) -> int:
    """Print what a run would use (`busso doctor`). Return 0 if it would start, else 2."""
    from busso.command.console import Progress, as_json, result_console
    from busso.train.doctor import measure as stages
    from busso.train.doctor import report as doctor
    from busso.train.learner.learner import with_learner_threads

    overrides = list(HydraConfig.get().overrides.task)
    settings = prepare_run(chosen_of(from_config(SCHEMAS, config), overrides)).settings
    if not isinstance(settings, TrainSettings):
        raise SettingsError("doctor", f"examines runs of algo=dqn only; {settings.algo} needs one CPU and no Ray")
    with Progress("measuring", None):
        findings = doctor.examine(settings)
        starts = all(finding.verdict != "error" for finding in findings)
        if starts and choose_device(settings.device).type == "cpu":
            settings = with_learner_threads(settings)
        measured = stages.measure(settings) if starts else None
    if not as_json(json.dumps(doctor.as_dict(findings, measured), indent=2)):
        for part in doctor.screen(findings, measured):
            result_console().print(part)
    return 0 if starts else 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
