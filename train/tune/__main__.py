"""`python -m train.tune [key=value ...]`: search hyperparameters; each trial is a run.

A key with several values or an interval is searched; all others hold for every trial:

    python -m train.tune study=lr minutes=2 learner.lr='tag(log,interval(1e-4,1e-2))' learner.n_step=1,2,4 trials=30

Without such a key conf/tune.yaml says what is searched. After Ctrl-C the same command resumes the study. Started
several times at once, on this machine or as a job array (slurm/tune.sh), the processes share the study.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING

from train.run.metrics.resources import wait_passively
from train.run.signals import EXIT_REQUEUE, StopRequest, hold_usr1

if __name__ == "__main__":
    hold_usr1()  # before the imports that take seconds
    wait_passively()

from command.errors import UserError
from command.lock.owner import restarts
from command.main import command
from command.settings.checks import SettingsError
from command.settings.compose import as_yaml
from command.settings.line import parse
from train.settings.dqn import TrainSettings
from train.tune.settings import Search, search_of

if TYPE_CHECKING:
    import optuna

    from train.tune.study import Study

EXAMPLE = "python -m train.tune game=tressette trials=20 episodes=50000"
FAILURES = 3  # of trials in a row; then something is wrong with all of them


@command
def main(arguments: Sequence[str]) -> int:
    """Run the command line; returns the exit code."""
    options = parse("python -m train.tune", "tune", arguments, EXAMPLE, multirun=True, explanation=__doc__)
    if find_spec("optuna") is None:
        raise SettingsError("tune", "needs Optuna, which is not installed", "pip install 'busso[tune]'")
    search = search_of(options.overrides)
    if options.print_config:
        found = "".join(f"# searched: {key}={dimension}\n" for key, dimension in search.dimensions.items())
        print(found + as_yaml(search.settings) + as_yaml(search.base), end="")
        return 0
    if isinstance(search.base, TrainSettings):
        from train.dqn.players.load import check_players  # with PyTorch, for which --help does not wait

        check_players(search.base)
    return _tune(search)


def _tune(search: Search) -> int:
    from train.tune import report, trial
    from train.tune.study import Study

    study = Study(search, trial.direction(search.base))
    print(f"study {search.folder}: {trial.meaning(search.base)}", file=sys.stderr)
    with StopRequest() as stop:  # also between two trials
        code = _run_trials(study, stop)
    report.show(study)
    if code:
        print("stopped: the same command resumes the study", file=sys.stderr)
    return code


def _run_trials(study: Study, stop: StopRequest) -> int:
    """Trials until there are enough, or a signal comes; returns the exit code."""
    from cards.stopping import StoppedError
    from train.dqn.learner.divergence import DivergedError
    from train.run.folder import RunInUseError

    busy: set[int] = set()
    failures, begun = 0, False
    while stop.signal is None:
        try:
            trial = study.next_trial(busy, stop.requested)
        except StoppedError:
            break
        if trial is None:
            return 0
        begun = True
        try:
            code = _run(study, trial)
        except RunInUseError:
            study.interrupted(trial.number)
            busy.add(trial.number)  # it is trained by hand
            continue
        except DivergedError as error:  # the sampler learns of trials that are given up, of failed ones nothing
            study.prune(trial.number, str(error))
            print(f"trial {trial.number + 1} is given up: {error}", file=sys.stderr)
            continue
        except UserError as error:
            if error.exit_code == EXIT_REQUEUE or error.key == "device":  # no fault of the trial, which is resumed
                study.interrupted(trial.number)
                raise
            study.fail(trial.number, str(error))
            print(f"trial {trial.number + 1}: {error}", file=sys.stderr)
            failures += 1
            if failures >= FAILURES:
                raise SettingsError("tune", f"{failures} trials in a row failed, the last one: {error}") from None
            continue
        if code:
            study.interrupted(trial.number)
            return code
        failures = 0
    return stop.exit_code(again=begun or not restarts())  # else a job that is too short is requeued for ever


def _run(study: Study, trial: optuna.Trial) -> int:
    """One trial to its end, or until a signal comes; returns the exit code. Raises UserError."""
    from train.tune.study import values_of
    from train.tune.trial import clear, result, run

    values = values_of(trial)
    chosen = study.search.trial(trial.number, values)
    said = " ".join(f"{key}={value}" for key, value in values.items())
    print(f"trial {trial.number + 1} of {study.search.settings.trials}: {said}", file=sys.stderr)
    code, gave_up = run(trial, chosen)
    if code:
        return code
    if gave_up:
        study.prune(trial.number)
        print(f"trial {trial.number + 1} is given up: it is behind the others", file=sys.stderr)
    else:
        study.complete(trial.number, *result(chosen.settings))
    clear(chosen.settings.folder)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
