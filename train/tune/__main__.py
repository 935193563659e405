"""`busso tune [key=value ...]`: search hyperparameters; each trial is a run.

Keys with several values or an interval are searched; +search=NAME adds those of conf/search/NAME.yaml. All other keys
apply to every trial. After Ctrl-C the same command resumes the study. Several processes that run it at once, on this
machine or as a job array (slurm/tune.sh), share the study.

example:
  busso tune study=lr learner.lr='tag(log,interval(1e-4,1e-2))' learner.batch_size=512,1024
"""

import sys
from collections.abc import Sequence
from importlib.util import find_spec

from busso.base.system import wait_passively
from busso.train.run.signals import hold_usr1

if __name__ == "__main__":
    hold_usr1()  # before slow imports
    wait_passively()

from hydra.core.config_store import ConfigStore
from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig

from busso.command.app import job, parted, run_app, typed
from busso.command.main import command
from busso.command.settings.checks import SettingsError
from busso.command.settings.compose import for_schema
from busso.train.settings.dqn import TrainSettings
from busso.train.settings.resolve import SCHEMAS
from busso.train.tune.settings import TuneSettings, as_params, search_of


@command
def main(arguments: Sequence[str]) -> int:
    """Run the command line and return the exit code."""
    flags, overrides = parted(arguments)
    try:
        import hydra_plugins.hydra_optuna_sweeper  # noqa: F401
    except ImportError:  # files in conf/search/ name this plugin but set only its params
        ConfigStore.instance().store("optuna", {"params": {}}, group="hydra/sweeper")
    flags = [each for each in flags if each not in ("-m", "--multirun")]
    return run_app("tune", tune, [*flags, *as_params(for_schema({**SCHEMAS, "tune": TuneSettings}, overrides))])


@job
def tune(config: DictConfig) -> int:
    """Run trials until the study has enough; return the exit code."""
    if find_spec("optuna") is None:
        hint = "pip install 'PATH[tune]', where PATH is a clone or a wheel of busso"
        raise SettingsError("tune", "needs Optuna, which is not installed", hint)
    search = search_of(config, HydraConfig.get().sweeper.params, typed())
    if isinstance(search.base, TrainSettings):
        from busso.train.players.trained import check_players  # imports PyTorch, which --help does not need

        check_players(search.base)
    from busso.train.tune.trial import run_study

    return run_study(search)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
