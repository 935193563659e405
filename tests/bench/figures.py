"""Committed figures (figures.json), their comparison with new measurements, and their table."""

import json
import os
import statistics
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import date
from pathlib import Path
from typing import Any

from busso.base import system
from busso.base.files import write_atomic

COMMITTED = Path(__file__).parent / "figures.json"
MAX_FALL = 0.10  # greatest relative fall of a ratio below the committed one
VARIANTS = ("kernel", "cores")  # keys that distinguish figures of the same name


@dataclass(frozen=True)
class Figure:
    """Figure of the table: median, minimum and maximum of several runs on one machine."""

    figure: str
    unit: str
    chip: str  # see `chip`
    median: float
    least: float
    most: float
    runs: int
    machine: str
    date: str
    command: str
    load: float  # runnable processes per CPU during the measurement: 0 on an idle machine
    target: float | None = None
    direction: str = "at least"


def _cpu() -> list[tuple[str, str]]:
    path = Path("/proc/cpuinfo")
    lines = path.read_text().splitlines() if path.exists() else []
    return [(key.strip(), value.strip()) for key, _, value in (line.partition(":") for line in lines)]


def chip() -> str:
    """Return the kind of this CPU as far as ratios depend on it: vendor, family, and bfloat16 instructions.

    The family matters: with the same instructions, AMD's family 26 reaches 333 GFLOP/s in bfloat16, 25 only 192.
    """
    about = dict(reversed(_cpu()))
    maker = {"AuthenticAMD": "AMD", "GenuineIntel": "Intel"}.get(about.get("vendor_id", ""), "other")
    family = f" family {about['cpu family']}" if "cpu family" in about else ""
    flags = about.get("flags", "").split()
    formats = (("amx_bf16", "AMX"), ("avx512_bf16", "AVX512-BF16"), ("avx512f", "AVX-512"), ("avx2", "AVX2"))
    return f"{maker}{family} {next((name for flag, name in formats if flag in flags), 'no AVX2')}"


def machine() -> str:
    """Return the CPU's name and the number of CPUs available to this process."""
    return f"{dict(reversed(_cpu())).get('model name', 'unknown CPU')}, {system.cpus()} cores"


def load() -> float:
    """Return the runnable processes per CPU over the last minute."""
    return round(os.getloadavg()[0] / system.cpus(), 2)


def name_of(line: dict[str, Any]) -> str:
    """Return the name of a reported line: its figure, and its variant if there are several."""
    variants = [f"{key} {line[key]}" for key in VARIANTS if key in line]
    return " ".join([line["figure"], *([f"({', '.join(variants)})"] if variants else [])])


def summed_up(lines: Iterable[dict[str, Any]], command: str, busy: float) -> list[Figure]:
    """Summarize the lines of several runs as figures with their spread, in order of first appearance."""
    of_name: dict[str, list[dict[str, Any]]] = {}
    for line in lines:
        of_name.setdefault(name_of(line), []).append(line)
    here = {"chip": chip(), "machine": machine(), "date": date.today().isoformat(), "command": command, "load": busy}
    figures = []
    for name, found in of_name.items():
        values, newest = [line["value"] for line in found], found[-1]
        spread = {"median": statistics.median(values), "least": min(values), "most": max(values), "runs": len(values)}
        aim = {key: newest[key] for key in ("target", "direction") if key in newest}
        figures.append(Figure(figure=name, unit=newest["unit"], **spread, **here, **aim))
    return figures


def committed(path: Path = COMMITTED) -> list[Figure]:
    """Return the committed figures."""
    return [Figure(**each) for each in json.loads(path.read_text())] if path.exists() else []


def commit(figures: Sequence[Figure], path: Path = COMMITTED) -> None:
    """Replace committed figures of the same name and kind of chip; keep the others."""
    there = {(each.figure, each.chip): each for each in [*committed(path), *figures]}
    text = ",\n".join(json.dumps(asdict(each)) for each in there.values())
    write_atomic(path, f"[\n{text}\n]\n")


def table(found: Sequence[Figure]) -> Iterator[str]:
    """Yield a Markdown table: median and spread of each figure, and the target if there is one."""
    yield from ("| figure | median | least to most | runs | to reach |", "|---|---|---|---|---|")
    for each in found:
        target = "" if each.target is None else f"{each.direction} {each.target:g}"
        spread = f"{each.least:.4g} to {each.most:.4g}"
        yield f"| `{each.figure}` | {each.median:.4g} {each.unit} | {spread} | {each.runs} | {target} |"


@dataclass(frozen=True)
class Guarded:
    """Ratio that `make bench-quick` guards."""

    figure: str
    any_chip: bool = False  # the same on every kind of chip


def fallen(value: float, before: Figure) -> bool:
    """Return whether a value is worse than the committed median by more than `MAX_FALL`."""
    if before.direction == "at most":
        return value > before.median * (1 + MAX_FALL)
    return value < before.median * (1 - MAX_FALL)


def compare(
    guarded: Sequence[Guarded], measured: dict[str, float], table: Sequence[Figure], kind: str
) -> tuple[list[str], list[str]]:
    """Return lines on unchanged or incomparable figures, and lines on fallen ones, one per guarded figure.

    Only figures of the same `kind` of chip are compared, unless the kind does not matter. An unmeasured figure counts
    as fallen, whatever is committed: its measurement is broken.
    """
    fine, worse = [], []
    for each in guarded:
        of_name = [figure for figure in table if figure.figure == each.figure]
        of_kind = [figure for figure in of_name if figure.chip == kind]
        before = next(iter(of_kind or (of_name if each.any_chip else [])), None)
        now = measured.get(each.figure)
        if now is None:
            worse.append(f"{each.figure}: not measured")
        elif before is None:
            fine.append(f"{each.figure}: {now:.4g}; no committed figure for this kind of chip ({kind})")
        else:
            (worse if fallen(now, before) else fine).append(
                f"{each.figure}: committed {before.median:.4g}, now {now:.4g}"
            )
    return fine, worse
