"""gpu_check.md: parts that passed, the bottleneck, how the run learned, and the rows of performance.md to replace."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from command.settings.checks import SettingsError
from command.terminal.visible import one_line
from train.gpu_check.parts import ROOT, RUN
from train.run.read import SPEED, UPDATE_SPEED, load_run

PASSED, FAILED, LEFT_OUT = "passed", "failed", "left out"
PERFORMANCE = ROOT / "docs" / "explanation" / "performance.md"
# Rows of that page with estimates, by figure and what it was measured with.
ROWS = {
    "gpu_updates batch=512": "updates of batch 512",
    "gpu_updates batch=16384": "updates of batch 16,384",
    "gpu_rollout rollout=ray": "`rollout=ray`, the default, 8 CPUs",
    "gpu_rollout rollout=threads": "`rollout=threads`, 8 CPUs",
    "gpu_rollout rollout=device": "`rollout=device`",
    "device_random_play": "random moves on the GPU",
}


def markdown(found: dict[str, Any], names: Sequence[str], folder: Path) -> str:
    """The page on what was found so far in the parts of these names."""
    return "\n".join([*_machine(found["machine"]), *_parts(found["parts"], names), *_run(folder), ""])


def _machine(machine: dict[str, Any]) -> Iterator[str]:
    yield f"# Check of {', '.join(machine['gpus']) or 'a machine without a GPU: none of this is a figure of a GPU'}\n"
    changed = ", changed" if machine["changed"] else ""
    yield f"busso {machine['version']} ({machine['commit']}{changed}), PyTorch {machine['torch']}, {machine['cpu']},"
    yield f"{machine['cpus']} CPUs and {machine['memory'] / 2**30:.0f} GiB for this job."


def _parts(done: dict[str, Any], names: Sequence[str]) -> Iterator[str]:
    yield "\n| part | result | seconds | says |\n|---|---|---|---|"
    for name in names:
        each = done.get(name, {"result": "not done yet", "seconds": 0.0, "says": []})
        says = "<br>".join(one_line(line).replace("|", "/") for line in each["says"] if not line.startswith("{"))
        yield f"| {name} | {each['result']} | {each['seconds']:.0f} | {says} |"
    yield "\n## Figures\n\nThose with a row replace the estimate in that row of docs/explanation/performance.md.\n"
    yield "| figure | measured | row | estimate |\n|---|---|---|---|"
    for figure in [figure for name in names if name in done for figure in done[name]["figures"]]:
        name = " ".join([figure["figure"], *(f"{key}={figure[key]}" for key in ("batch", "rollout") if key in figure)])
        row = ROWS.get(name, "")
        estimates = "; ".join(f"{column}: {text}" for column, text in estimates_of(row).items())
        yield f"| `{name}` | {figure['value']} {figure['unit']} | {row} | {estimates} |"


def estimates_of(row: str) -> dict[str, str]:
    """What docs/explanation/performance.md says in this row of a table, by column; empty without such a row or page."""
    columns: list[str] = []
    for line in PERFORMANCE.read_text().splitlines() if row and PERFORMANCE.exists() else ():
        cells = [cell.strip() for cell in line.strip("|").split("|")] if line.startswith("|") else []
        if cells[:1] == [row]:
            return dict(zip(columns[1:], cells[1:], strict=False))
        columns = columns if cells and columns else cells
    return {}


def _run(folder: Path) -> Iterator[str]:
    """Speeds, and the evaluations by minutes."""
    for path in (folder / "runs").glob(f"*/{RUN}/config.yaml"):
        yield "\n## The run\n"
        try:
            run = load_run(path.parent)
            curves = run.curves()
        except SettingsError as error:
            yield str(error)
            return
        log = (path.parent / "train.log").read_text(errors="replace").splitlines()
        yield from (f"* {line.partition(' ')[2]}" for line in log if "self-check" in line)
        for name in (SPEED, UPDATE_SPEED):
            yield f"* {name}: {np.median(curves[name][1]):,.0f}, median of the rows" if name in curves else ""
        yield "\n| curve | decisions | minutes | value |\n|---|---|---|---|"
        for name, (steps, values) in curves.items():
            rows = zip(steps, run.seconds_at(steps) / 60, values, strict=True) if name.startswith("eval/") else ()
            yield from (f"| {name} | {at:,.0f} | {minutes:.1f} | {value:.3f} |" for at, minutes, value in rows)
