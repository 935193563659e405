"""`python -m evaluate.ablation`: what each part of a recipe is worth, by training without it, with several seeds."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from dataclasses import asdict, dataclass, field
from math import isnan, sqrt
from pathlib import Path
from statistics import mean, stdev
from threading import Lock
from typing import Any

import yaml

from cards.base.bounds import bounded
from cards.base.files import write_atomic
from command.child import child_command
from command.errors import UserError
from command.game import with_game_options
from command.main import command
from command.settings.checks import MAX_COUNT, MAX_DEALS, MAX_SEED, MAX_THREADS, SettingsError, check_numbers, require
from command.settings.compose import as_yaml, compose
from command.settings.line import parse
from command.settings.overrides import key_of
from command.terminal.progress import Progress
from train.run.metrics.resources import cpus
from train.run.results import read_results
from train.run.signals import StopRequest
from train.settings.dqn import TrainSettings
from train.settings.resolve import Chosen

log = logging.getLogger("evaluate")
EXAMPLE = "python -m evaluate.ablation game=tressette episodes=20000 seeds=[1,2]"

# Two-sided 95% quantiles of Student's t with 1, 2, ... degrees of freedom, and that of the normal distribution.
_STUDENT = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262)
_NORMAL = 1.959964
_LOOK_SECONDS = 0.25  # between looks at whether a signal has come
_LEFT_FREE = ("name", "seed", "runs", "episodes", "rollout", "evaluation.opponents", "evaluation.final_deals")


@dataclass
class AblationSettings:
    """The settings of `python -m evaluate.ablation`; conf/ablation.yaml explains them."""

    game: dict[str, Any]
    episodes: int = bounded(100_000, 1, MAX_COUNT)
    seeds: list[int] = bounded([1, 2, 3], 0, MAX_SEED)
    jobs: int | None = bounded(None, 1, MAX_THREADS)
    opponents: list[str] = field(default_factory=list)
    deals: int = bounded(4096, 2, MAX_DEALS)
    runs: str = "runs/ablation"
    common: list[str] = field(default_factory=list)
    rows: dict[str, list[str]] = field(default_factory=dict)
    only: list[str] | None = None

    def __post_init__(self) -> None:
        check_numbers("", self)
        require(bool(self.seeds) and len(set(self.seeds)) == len(self.seeds), "seeds", "each once", self.seeds)
        chosen = list(self.rows) if self.only is None else self.only
        require(set(chosen) <= set(self.rows), "only", f"some of {', '.join(self.rows)}", self.only)
        require(bool(chosen), "only", "at least one row", self.only)
        self.rows = {name: self.rows[name] for name in chosen}
        require(bool(self.opponents), "opponents", "at least one player", self.opponents)
        for name, overrides in [("common", self.common), *((f"rows.{name}", row) for name, row in self.rows.items())]:
            taken = [each for each in overrides if key_of(each) in _LEFT_FREE]
            require(not taken, name, f"settings other than {', '.join(_LEFT_FREE)}, which the study sets", taken)


@dataclass(frozen=True)
class Trial:
    """One run of the study."""

    row: str
    seed: int
    overrides: list[str]
    settings: TrainSettings


class AblationError(UserError):
    """Some runs failed."""

    exit_code = 1


@command
def main(arguments: Sequence[str]) -> int:
    """Run the command line; returns the exit code."""
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    options = parse("python -m evaluate.ablation", "ablation", arguments, EXAMPLE)
    settings = compose(
        AblationSettings, "ablation", with_game_options(options.overrides, "tressette", AblationSettings)
    )
    if options.print_config:
        print(as_yaml(settings), end="")
        return 0
    planned = trials(settings)
    with StopRequest() as stop:
        failed = train(settings, planned, stop)
    if stop.signal is not None:
        done = sum(map(finished, planned))
        print(f"stopped: {done} of {len(planned)} runs are finished; the same command goes on", file=sys.stderr)
        return stop.exit_code(again=True)
    results = {row: _of_row(row, planned) for row in settings.rows}
    table = markdown(settings, results)
    folder = Path(settings.runs)
    folder.mkdir(parents=True, exist_ok=True)
    name = settings.game["name"]
    write_atomic(folder / f"{name}.md", table)
    written = {"settings": asdict(settings), "results": results}
    write_atomic(folder / f"{name}.json", json.dumps(written, indent=2) + "\n")
    print(table, end="")
    print(f"written to {folder / name}.md and .json", file=sys.stderr)
    if failed:
        raise AblationError(
            "rows", f"{len(failed)} of {len(planned)} runs failed", f"see {', '.join(map(str, failed))}"
        )
    return 0


# ---------------------------------------------------------------------- the runs


def trials(settings: AblationSettings) -> list[Trial]:
    """All runs, seed by seed, so that a study that is stopped has whole seeds. Raises SettingsError for a bad row."""
    game = [f"game={settings.game['name']}", *(f"game.{k}={_text(v)}" for k, v in settings.game.items() if k != "name")]
    common = [
        *game,
        f"runs={settings.runs}",
        f"episodes={settings.episodes}",
        "rollout=local",
        "evaluation.opponents=[" + ",".join(f"'{name}'" for name in settings.opponents) + "]",
        f"evaluation.final_deals={settings.deals}",
        f"evaluation.every_episodes={settings.episodes}",
        *settings.common,
    ]
    found = []
    for seed in settings.seeds:
        for row, own in settings.rows.items():
            # What a row says of the game comes after what all have.
            overrides = [*common, *own, f"name='{row},seed={seed}'", f"seed={seed}"]
            try:
                found.append(Trial(row, seed, overrides, _settings(overrides)))
            except SettingsError as error:
                raise SettingsError(f"rows.{row}", error) from None
    return found


def _settings(overrides: list[str]) -> TrainSettings:
    """What the run will have, so that it is known by its config.yaml."""
    from train.dqn.warm_start import with_shape_of_start  # with PyTorch, for which --help and --cfg do not wait

    chosen = Chosen(compose(TrainSettings, "train", overrides), given=tuple(overrides))
    found = with_shape_of_start(chosen).settings
    assert isinstance(found, TrainSettings)
    return found


def _text(value: Any) -> str:
    return json.dumps(value) if value is not None else "null"


def train(settings: AblationSettings, planned: Sequence[Trial], stop: StopRequest) -> list[Path]:
    """Train what is not trained yet, `jobs` runs at a time; returns the logs of those that failed.

    When a signal comes, those under way are asked to end with a checkpoint, which is waited for.
    """
    jobs = settings.jobs or cpus()
    todo = [trial for trial in planned if not finished(trial)]
    log.info("%d runs, %d of them finished; %d at a time", len(planned), len(planned) - len(todo), jobs)
    failed, done, processes = [], len(planned) - len(todo), Processes()
    with Progress("training", len(planned), "runs", done) as progress, ThreadPoolExecutor(jobs) as pool:
        futures = {pool.submit(processes.train, trial): trial for trial in todo}
        left = set(futures)
        try:
            while left and stop.signal is None:
                ended, left = wait(left, _LOOK_SECONDS, FIRST_COMPLETED)
                for future in ended:
                    trial, path, done = futures[future], future.result(), done + 1
                    end = f" failed, see {path}" if path else ""
                    progress.say(f"{done} of {len(planned)}: {trial.row}, seed {trial.seed}{end}")
                    progress.update(done)
                    failed += [path] if path else []
        finally:
            processes.stop()
    return failed


def finished(trial: Trial) -> bool:
    """Whether its results are there, of the same settings."""
    return results_of(trial) is not None


def results_of(trial: Trial) -> dict[str, Any] | None:
    """Those of a complete run with the same settings; None while there is none, or they are damaged."""
    folder = trial.settings.folder
    try:
        there = yaml.safe_load((folder / "config.yaml").read_text())
        return read_results(folder) if there == yaml.safe_load(as_yaml(trial.settings)) else None
    except (OSError, yaml.YAMLError, SettingsError):
        return None


class Processes:
    """The runs under way, each on one CPU; once they were stopped no other begins."""

    def __init__(self) -> None:
        self._lock, self._stopped = Lock(), False
        self._running: set[subprocess.Popen[bytes]] = set()

    def train(self, trial: Trial) -> Path | None:
        """One run to its end; returns its log if it failed."""
        folder = trial.settings.folder
        path = folder / "output.log"
        command = child_command("train", trial.overrides)  # kill -9 of this process ends its runs too
        environment = os.environ | {"OMP_NUM_THREADS": "1"}
        with self._lock:
            if self._stopped:
                return None
            folder.mkdir(parents=True, exist_ok=True)
            with path.open("a") as output:
                process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, env=environment)
            self._running.add(process)
        code = process.wait()
        with self._lock:
            self._running.discard(process)
            return path if code and not self._stopped else None

    def stop(self) -> None:
        """Ask those under way to end with a checkpoint."""
        with self._lock:
            self._stopped = True
            for process in self._running:
                process.terminate()


# ---------------------------------------------------------------------- the table


def _of_row(row: str, planned: Sequence[Trial]) -> dict[int, dict[str, dict[str, Any]]]:
    """The final results of a row by seed and opponent."""
    found = {}
    for trial in planned:
        if trial.row == row and (results := results_of(trial)) is not None:
            found[trial.seed] = results
    return found


def over_seeds(values: Sequence[float]) -> tuple[float, float]:
    """Mean and half-width of its 95% interval over seeds, by Student's t; of a single one the width is not known."""
    if len(values) < 2:
        return mean(values), float("nan")
    return mean(values), _student(len(values) - 1) * stdev(values) / sqrt(len(values))


def _student(freedom: int) -> float:
    """From the table, and beyond it by two terms of Cornish and Fisher's expansion, which are right to 0.003 there."""
    if freedom <= len(_STUDENT):
        return _STUDENT[freedom - 1]
    z = _NORMAL
    return z + (z**3 + z) / (4 * freedom) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * freedom**2)


def markdown(settings: AblationSettings, results: Mapping[str, Mapping[int, Mapping[str, Any]]]) -> str:
    """The table: for each row the games won against each opponent, and how much more in the mean than the first row."""
    first = next(iter(settings.rows))
    header = ["row", "settings", *(f"`{name}`" for name in settings.opponents), f"mean, more than {first}", "seeds"]
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    for row, overrides in settings.rows.items():
        said = " ".join(f"`{each}`" for each in overrides)
        cells = [row, said, *_cells(settings, results[row]), _difference(settings, results[first], results[row])]
        lines.append("| " + " | ".join([*cells, str(len(results[row]))]) + " |")
    note = (
        f"{settings.game['name']}, {settings.episodes:,} games each, {settings.deals:,} duplicate deals each. "
        "Games won; after ± the 95% interval over seeds, by Student's t, for differences over pairs with one seed."
    )
    return "\n".join([*lines, "", note]) + "\n"


def _cells(settings: AblationSettings, seeds: Mapping[int, Mapping[str, Any]]) -> list[str]:
    if not seeds:
        return ["" for _ in settings.opponents]
    return [_share(*over_seeds([_won(result, name) for result in seeds.values()])) for name in settings.opponents]


def _difference(
    settings: AblationSettings, first: Mapping[int, Mapping[str, Any]], row: Mapping[int, Mapping[str, Any]]
) -> str:
    both = [seed for seed in row if seed in first]
    if first is row or not both:
        return ""
    names = settings.opponents
    more = [mean(_won(row[seed], name) - _won(first[seed], name) for name in names) for seed in both]
    return _share(*over_seeds(more), sign="+")


def _won(result: Mapping[str, Any], opponent: str) -> float:
    return float(result[opponent]["win_rate"][0])


def _share(value: float, half: float, sign: str = "") -> str:
    width = "" if isnan(half) else f" ± {100 * half:.1f}"
    return f"{100 * value:{sign}.1f}{width}%"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
