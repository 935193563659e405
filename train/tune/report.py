"""Results of a study: a table of its trials, and the best settings as an experiment."""

import sys
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf
from optuna.trial import FrozenTrial, TrialState
from rich.table import Table

from busso.base.files import write_atomic, write_csv
from busso.cards.duplicate import decimals
from busso.cards.packages import typed_game
from busso.command.conf_folder import CONF, value_at
from busso.command.console import output_may_fail, result_console
from busso.command.settings.quoting import key_of
from busso.train.run.read import objective_meaning
from busso.train.settings.dqn import TrainSettings
from busso.train.settings.resolve import changes, defaults_of
from busso.train.settings.run import MACHINE_KEYS
from busso.train.tune.settings import as_plain
from busso.train.tune.study import HALF_WIDTH, WHY, Study, run_of, values_of

ROWS = 15  # rows printed
# Prefixes of keys left out of experiments: where a run is, and how it is measured.
_NOT_OF_AN_EXPERIMENT = (
    *(*MACHINE_KEYS, "algo", "game.name", "log_every_episodes", "rollout.", "checkpoint."),
    *(f"evaluation.{key}" for key in ("every_episodes", "min_seconds", "max_seconds", "deals", "final_deals")),
)
_STATES = {TrialState.COMPLETE: "complete", TrialState.PRUNED: "given up", TrialState.FAIL: "failed"}


def show(study: Study) -> None:
    """Print the table, and write trials.csv and the experiment of the best trial into the study's folder."""
    best = study.best
    rows = [_row(trial) for trial in (*best, *(trial for trial in study.trials if trial not in best))]
    keys = list(study.search.dimensions)
    write_csv(study.search.folder / "trials.csv", rows, ["trial", "state", "result", "half_width", *keys])
    with output_may_fail():
        result_console().print(_table(study, rows, keys))
    if not best:
        print("no trial is complete yet", file=sys.stderr)
        return
    path = write_experiment(study, best[0])
    if len(best) > 1:
        print(
            f"the best of {len(best)} trials is partly luck: train it again with another seed before you trust it",
            file=sys.stderr,
        )
    game = study.search.base.game_name
    own = f"game={typed} " if (typed := typed_game(game)) != game else ""
    line = f"busso train {own}--config-dir {path.parent.parent} experiment={path.stem} name=..."
    print(f"the best as an experiment: {line}", file=sys.stderr)


def write_experiment(study: Study, best: FrozenTrial) -> Path:
    """Write <study>/experiment/<study's name>.yaml with a trial's settings that differ from the game's defaults."""
    values = values_of(best.params)
    chosen = study.search.trial(run_of(best), values).settings
    found = asdict(chosen)
    choices = {"game": typed_game(chosen.game_name), "algo": chosen.algo}
    if isinstance(chosen, TrainSettings):
        choices["target"] = chosen.target.kind
    plain = defaults_of(chosen, *(f"target={kind}" for group, kind in choices.items() if group == "target"))
    assert plain is not None  # its trials have run with them
    name = study.search.settings.study.rpartition("/")[2]
    if (CONF / "experiment" / f"{name}.yaml").exists():
        name += "_best"  # Hydra would load the shipped file instead
    groups = [{f"override /{group}": choice} for group, choice in choices.items()]
    written = OmegaConf.create({"defaults": groups, "name": name})
    for key, (_, value) in changes(asdict(plain), found).items():
        if not key.startswith(_NOT_OF_AN_EXPERIMENT):
            OmegaConf.update(written, key, value)
    for key in map(key_of, values):
        if key.partition(".")[0] in found:  # also if the best value is the default
            OmegaConf.update(written, key, value_at(found, key))
    path = study.search.folder / "experiment" / f"{name}.yaml"
    path.parent.mkdir(exist_ok=True)
    says = f"# The best of {len(study.trials)} trials of the study {study.search.folder}, trial {run_of(best)}: "
    says += f"{best.value:.4f}, {objective_meaning(chosen)}.\n"
    write_atomic(path, f"# @package _global_\n{says}{OmegaConf.to_yaml(written)}")
    return path


def _row(trial: FrozenTrial) -> dict[str, Any]:
    """Return a trial's row of trials.csv."""
    why = f": {trial.user_attrs[WHY]}" if WHY in trial.user_attrs else ""
    return {
        "trial": run_of(trial),
        "state": _STATES.get(trial.state, "not finished") + why,
        "result": trial.value if trial.state == TrialState.COMPLETE else "",
        "half_width": trial.user_attrs.get(HALF_WIDTH, ""),
    } | {key: as_plain(key, value) for key, value in values_of(trial.params).items()}


def _table(study: Study, rows: list[dict[str, Any]], keys: list[str]) -> Table:
    left = len(rows) - ROWS
    more = f"; {left} more in {study.search.folder / 'trials.csv'}" if left > 0 else ""
    caption = f"best first; after ± are 95% intervals{more}"
    table = Table(title=f"{study.search.folder}: {objective_meaning(study.search.base)}", caption=caption)
    for name in ("trial", "result", *keys, "state"):
        table.add_column(name, overflow="fold", justify="right" if name in ("trial", "result") else "left")
    for row in rows[:ROWS]:
        table.add_row(f"{row['trial']:03d}", _result(row), *(row.get(key, "") for key in keys), row["state"])
    return table


def _result(row: Mapping[str, Any]) -> str:
    value, half = row["result"], row["half_width"]
    if half in ("", 0.0):
        return f"{value:.5f}" if value != "" else ""
    return f"{value:.{decimals(half)}f} ± {half:.{decimals(half)}f}"
