"""The results of a study: a table of its trials, and the best settings as an experiment."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf
from optuna.trial import FrozenTrial, TrialState
from rich.table import Table

from busso.cards.base.files import write_atomic, write_csv
from busso.cards.base.own_files import typed_game
from busso.cards.matches.duplicate import decimals
from busso.command.conf_folder import CONF
from busso.command.settings.overrides import key_of
from busso.command.terminal.console import output_may_fail, result_console
from busso.train.run.objective import meaning
from busso.train.settings.dqn import TrainSettings
from busso.train.settings.resolve import defaults_of
from busso.train.settings.saved import changes, value_at
from busso.train.tune.study import WHY, Study, values_of

ROWS = 15  # on the screen
# What an experiment says nothing of: which run it is, how long it takes, and where.
_NOT_OF_AN_EXPERIMENT = ("name", "runs", "episodes", "minutes", "iterations", "device", "log_every_episodes", "algo")
_NO_GROUPS = (
    "rollout.",
    "checkpoint.",
    "game.name",
    *(f"evaluation.{key}" for key in ("every_episodes", "min_seconds", "max_seconds", "deals", "final_deals")),
)
_STATES = {
    TrialState.COMPLETE: "complete",
    TrialState.PRUNED: "given up",
    TrialState.FAIL: "failed",
    TrialState.RUNNING: "not finished",
    TrialState.WAITING: "not begun",
}


def ranked(study: Study) -> list[FrozenTrial]:
    """Complete trials, best first, then the others by number."""
    sign = -1 if study.maximises else 1

    def place(trial: FrozenTrial) -> tuple[float, int]:
        complete = trial.state == TrialState.COMPLETE and trial.value is not None
        return (sign * trial.value if complete and trial.value is not None else float("inf")), trial.number

    return sorted(study.trials, key=place)


def show(study: Study) -> None:
    """Print the table, and write trials.csv and the experiment of the best trial into the study's folder."""
    trials = ranked(study)
    keys = list(study.search.dimensions)
    rows = [_row(trial, keys) for trial in trials]
    write_csv(study.search.folder / "trials.csv", rows, ["trial", "state", "result", "half_width", *keys])
    with output_may_fail():
        result_console().print(_table(study, trials))
    complete = [trial for trial in trials if trial.state == TrialState.COMPLETE]
    if not complete:
        print("no trial is complete yet", file=sys.stderr)
        return
    path = write_experiment(study, complete[0])
    if len(complete) > 1:
        print(
            f"the best of {len(complete)} trials is partly luck: train it again with another seed before you trust it",
            file=sys.stderr,
        )
    game = study.search.base.game_name
    own = f"game={typed} " if (typed := typed_game(game)) != game else ""
    line = f"busso train {own}--config-dir {path.parent.parent} experiment={path.stem} name=..."
    print(f"the best as an experiment: {line}", file=sys.stderr)


def write_experiment(study: Study, best: FrozenTrial) -> Path:
    """<study>/experiment/<study's name>.yaml with the settings of a trial that differ from the defaults of its game."""
    chosen = study.search.trial(best.number, values_of(best)).settings
    found = asdict(chosen)
    game = typed_game(chosen.game_name)
    choices = {"game": game, "algo": chosen.algo}
    if isinstance(chosen, TrainSettings):
        choices["target"] = chosen.target.kind
    plain = defaults_of(chosen, *([f"target={chosen.target.kind}"] if isinstance(chosen, TrainSettings) else []))
    assert plain is not None  # its trials have run
    name = study.search.settings.study.rpartition("/")[2]
    if (CONF / "experiment" / f"{name}.yaml").exists():
        name += "_best"  # Hydra would take the other one
    groups = [{f"override /{group}": choice} for group, choice in choices.items()]
    values = OmegaConf.create({"defaults": groups, "name": name})
    for key, (_, value) in changes(asdict(plain), found).items():
        if key not in _NOT_OF_AN_EXPERIMENT and not key.startswith(_NO_GROUPS):
            OmegaConf.update(values, key, value)
    for key in map(key_of, values_of(best)):
        if key.partition(".")[0] in found:  # also where it is what the default says: that is what was found
            OmegaConf.update(values, key, value_at(found, key))
    path = study.search.folder / "experiment" / f"{name}.yaml"
    path.parent.mkdir(exist_ok=True)
    says = f"# The best of {len(study.trials)} trials of the study {study.search.folder}, trial {best.number}: "
    says += f"{best.value:.4f}, {meaning(chosen)}.\n"
    write_atomic(path, f"# @package _global_\n{says}{OmegaConf.to_yaml(values)}")
    return path


def _table(study: Study, trials: Sequence[FrozenTrial]) -> Table:
    keys = list(study.search.dimensions)
    shown, left = trials[:ROWS], max(0, len(trials) - ROWS)
    more = f"; {left} more in {study.search.folder / 'trials.csv'}" if left else ""
    caption = f"best first; after ± are 95% intervals{more}"
    table = Table(title=f"{study.search.folder}: {meaning(study.search.base)}", caption=caption)
    for name in ("trial", "result", *keys, "state"):
        table.add_column(name, overflow="fold", justify="right" if name in ("trial", "result") else "left")
    for trial in shown:
        values = values_of(trial)
        state = _STATES[trial.state]
        why = f": {trial.user_attrs[WHY]}" if WHY in trial.user_attrs else ""
        cells = (values.get(key, "") for key in keys)
        table.add_row(f"{trial.number:03d}", _text(trial), *cells, state + why)
    return table


def _text(trial: FrozenTrial) -> str:
    if trial.state == TrialState.PRUNED and trial.intermediate_values:
        return f"({trial.intermediate_values[max(trial.intermediate_values)]:.3f})"
    if trial.state != TrialState.COMPLETE or trial.value is None:
        return ""
    half = trial.user_attrs.get("half_width")
    if half is None:
        return f"{trial.value:.5f}"
    places = decimals(half) if half > 0 else 3
    return f"{trial.value:.{places}f} ± {half:.{places}f}"


def _row(trial: FrozenTrial, keys: Iterable[str]) -> dict[str, Any]:
    """The line of trials.csv."""
    values = values_of(trial)
    return {
        "trial": trial.number,
        "state": _STATES[trial.state],
        "result": trial.value if trial.state == TrialState.COMPLETE else "",
        "half_width": trial.user_attrs.get("half_width", ""),
    } | {key: values.get(key, "") for key in keys}
