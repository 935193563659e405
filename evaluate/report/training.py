"""Sections on the training of a run: settings, program and machine, speed and bottleneck, curves, results."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from busso.base.terminal import code
from busso.cards.duplicate import ONE_AGAINST_MANY, decimals, share_text
from busso.cards.packages import typed_game
from busso.command.settings.checks import SettingsError
from busso.command.settings.quoting import value_text
from busso.evaluate.report.drawing import Line, Panel, draw_panels
from busso.evaluate.report.page import Block, Figure, Section, Text, TextTable
from busso.evaluate.report.runs import (
    BAND,
    Axis,
    band,
    by_decisions,
    by_minutes,
    differences,
    shapes_learning,
)
from busso.train.doctor import measure as stages
from busso.train.rollout.worker import evaluation_seating
from busso.train.run.curves import evaluation_scalar
from busso.train.run.launches import this_hardware
from busso.train.run.read import SPEED, UPDATE_SPEED, Run
from busso.train.settings.dqn import TrainSettings
from busso.train.settings.resolve import defaults_of

_MEASURE_SECONDS = 0.25  # for each stage
_GIB = 1 << 30
# (name, title, form) of the learning curves.
_LEARNING = (
    ("train/loss", "loss", "log"),
    ("train/td_error", "TD error", "plain"),
    ("error/greatest", "greatest error", "log"),
    ("error/mean", "mean error", "log"),
    ("policy/optimal_share", "states with the optimal action", "percent"),
    ("policy/loss", "loss of reward per game", "plain"),
    ("table/unvisited", "states never visited", "plain"),
    ("table/changed", "states whose action changed", "plain"),
)


def facts(run: Run, seeds: int) -> dict[str, str]:
    """Return the key figures of a run."""
    found = {"game": run.settings.game_name, "algorithm": run.settings.algo}
    found["seeds"] = str(run.settings.seed) if seeds == 1 else f"{seeds}, of which {run.settings.seed}"
    steps = run.counters.get("env_steps") or max((steps[-1] for steps, _ in run.curves().values()), default=0)
    found["decisions"] = f"{int(steps):,}"
    if seconds := float(run.counters.get("seconds", 0.0)):
        found["training time"] = in_words(seconds)
        found["decisions a second"] = f"{steps / seconds:,.0f}"
    if not run.results:
        found["state"] = "not finished"
    return found


def in_words(seconds: float) -> str:
    """Format a duration as `76 min`, `2.5 h`."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def settings_section(run: Run) -> Section:
    """Return the section of the settings that differ from the defaults, those that affect learning first."""
    plain = defaults_of(run.settings)
    if plain is None:
        return Section(
            "Settings", [Text("The defaults of this game are not found here; `config.yaml` has all settings.")]
        )
    found = differences(plain, run.settings)
    ordered = sorted(found, key=lambda key: not shapes_learning(key))
    rows = [(f"`{key}`", value_text(found[key][1]), value_text(found[key][0]), _kind(key)) for key in ordered]
    command = f"`busso train game={typed_game(run.settings.game_name)}`"
    text = f"{command} has the defaults; `config.yaml` of the run has all settings."
    if not rows:
        return Section("Settings", [Text(f"No setting differs from the defaults. {text}")])
    return Section("Settings", [Text(text), TextTable(("setting", "here", "default", ""), rows, left=(0, 1, 2, 3))])


def _kind(key: str) -> str:
    return "" if shapes_learning(key) else "length or machine"


def origin_section(run: Run) -> Section | None:
    """Return the section on program and machine; None if the run has no record of them."""
    if not run.launches:
        return None
    seen: dict[str, dict[str, Any]] = {}
    for launch in run.launches:
        on = [launch.get(key) for key in ("version", "commit", "changed", "machine", "learner")]
        seen.setdefault(str(on), launch)
    rows = [(*_of_launch(launch), str(launch.get("learner", ""))) for launch in seen.values()]
    columns = ("started", "busso", "commit", "CPU", "CPUs", "memory", "GPUs", "what learns")
    caption = f"A row for each program and machine; starts: {len(run.launches)}."
    return Section("Program and machine", [TextTable(columns, rows, caption, left=tuple(range(len(columns))))])


def _of_launch(launch: dict[str, Any]) -> tuple[str, ...]:
    machine = launch.get("machine") or {}
    commit = str(launch.get("commit") or "")[:10] or "no clone"
    gpus = ", ".join(machine.get("gpus") or []) or "none"
    memory = f"{machine.get('memory', 0) / _GIB:.0f} GiB"
    when = str(launch.get("time", ""))[:16].replace("T", " ")
    changed = " and changes" if launch.get("changed") and launch.get("commit") else ""
    version = f"{launch.get('version', '')}, torch {launch.get('torch', '')}"
    return when, version, commit + changed, str(machine.get("cpu", "")), str(machine.get("cpus", "")), memory, gpus


def throughput_section(run: Run, measure: bool) -> Section | None:
    """Return the section on speed and its bottleneck; None for a run without curves."""
    speed = run.curve(SPEED)
    if speed is None:
        return None
    rows = [_speed_row("decisions a second", speed[1])]
    if (updates := run.curve(UPDATE_SPEED)) is not None and updates[1].any():
        rows.append(_speed_row("updates a second", updates[1]))
    whole = facts(run, 1)
    pace = " in {training time}, {decisions a second} a second on average" if "training time" in whole else ""
    columns = ("", "median", "10% are below", "10% are above")
    table = TextTable(columns, rows, "Between two rows of `metrics.csv`.")
    blocks: list[Block] = [Text(f"The run made {whole['decisions']} decisions{pace.format(**whole)}."), table]
    line = band([run], SPEED, by_minutes)
    if line is not None and len(line.x) > 2:
        panel = Panel("", {"": line}, "decisions a second")
        svg = draw_panels("speed", [panel], "minutes of training", columns=1)
        blocks.append(Figure(svg, "Decisions a second over the time of training."))
    if measure and isinstance(run.settings, TrainSettings):
        blocks += _limits(run, run.settings)
    return Section("Throughput", blocks)


def _speed_row(name: str, values: Any) -> list[str]:
    low, middle, high = np.quantile(values, (0.1, 0.5, 0.9))
    return [name, *(f"{value:,.0f}" if value >= 100 else f"{value:.3g}" for value in (middle, low, high))]


def _limits(run: Run, settings: TrainSettings) -> Iterator[Block]:
    """Yield the bottleneck, and the share of each stage of the time, not speeds, which now are not those of then."""
    try:
        measured = stages.measure(settings, _MEASURE_SECONDS)
    except (SettingsError, RuntimeError, MemoryError) as error:
        yield Text(f"The bottleneck could not be measured here: {code(error)}")
        return
    here = this_hardware()
    where = f"`{here['cpu']}`, {here['cpus']} CPUs" + "".join(f", {gpu}" for gpu in here["gpus"])
    same = bool(run.launches) and run.launches[-1].get("machine") == here
    other = "" if same else ", not the machine of the newest start"
    limit = measured.limit
    yield Text(
        f"Limited by the {limit.name}, as measured for this report on {where}{other}. To change: {limit.change}."
    )
    rows = [(each.name, f"{measured.busy(each):.0%}") for each in measured.stages]
    yield TextTable(("stage", "share of the time"), rows, "Each was measured alone; `busso doctor` takes longer.")


def curves_section(runs: Sequence[Run]) -> Section | None:
    """Return the section of evaluations over decisions and time, and learning curves; runs differ only in the seed."""
    blocks: list[Block] = []
    axes = (("won-by-decisions", by_decisions, "decisions"), ("won-by-time", by_minutes, "minutes of training"))
    for name, axis, label in axes:
        lines = _evaluations(runs, axis)
        if any(len(line.x) > 1 for line in lines.values()):
            svg = draw_panels(name, [Panel("games won", lines, "", "percent", even_of(runs[0]))], label, columns=1)
            says = f"Games won in evaluation over {label}."
            blocks.append(Figure(svg, says, f"{says} {BAND}"))
    curves = [(band(runs, name), title, form) for name, title, form in _LEARNING]
    if learning := [Panel(title, {"": line}, "", form) for line, title, form in curves if line is not None]:
        svg = draw_panels("learning", learning, "decisions")
        blocks.append(Figure(svg, "Learning curves over decisions.", "Learning, over decisions."))
    return Section("Curves", blocks) if blocks else None


def even_of(run: Run) -> float | None:
    """Return the share of games that equal players win in evaluations; None if one sits against many."""
    settings = run.settings
    many = isinstance(settings, TrainSettings) and evaluation_seating(settings) == ONE_AGAINST_MANY
    return None if many else 0.5


def _evaluations(runs: Sequence[Run], axis: Axis) -> dict[str, Line]:
    lines = {f"against {name}": band(runs, evaluation_scalar("win_rate", name), axis) for name in runs[0].opponents}
    return {name: line for name, line in lines.items() if line is not None}


def results_section(runs: Sequence[Run]) -> Section | None:
    """Return the section of results against each opponent, one row per finished run; None without results of games."""
    unit = runs[0].settings.load_game().unit
    runs = [run for run in runs if run.against("win_rate")]
    opponents = list(dict.fromkeys(name for run in runs for name in run.against("win_rate")))
    if not opponents:
        return None
    won = [(_named(run, runs), *(_share(run, opponent) for opponent in opponents)) for run in runs]
    more = [(_named(run, runs), *(_margin(run, unit, opponent) for opponent in opponents)) for run in runs]
    heads = [f"`{opponent}`" for opponent in opponents]
    deals = sorted({int(run.results[name]["deals"]) for run in runs for name in opponents if name in run.results})
    played = f"{deals[0]:,}" if len(deals) == 1 else f"{deals[0]:,} to {deals[-1]:,}"
    caption = f"on {played} duplicate deals against each, with 95% intervals over deals."
    return Section(
        "Results",
        [
            TextTable(("games won", *heads), won, f"Share of games won {caption}"),
            TextTable((f"{unit} more", *heads), more, f"Own result less the other side's, mean of a game, {caption}"),
        ],
    )


def _named(run: Run, runs: Sequence[Run]) -> str:
    return f"`{run.name}`" + (f" (seed {run.settings.seed})" if len(runs) > 1 else "")


def _share(run: Run, opponent: str) -> str:
    found = run.against("win_rate").get(opponent)
    return "" if found is None else share_text(found.mean, found.low, found.high)


def _margin(run: Run, unit: str, opponent: str) -> str:
    found = run.against(unit).get(opponent)
    if found is None:
        return ""
    places = decimals(found.half_width)
    return f"{found.mean:+.{places}f} ± {found.half_width:.{places}f}"
