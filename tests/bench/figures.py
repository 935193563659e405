"""The committed figures (figures.json), what was measured now against them, and the table of docs/performance.md."""

from __future__ import annotations

import json
import os
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from datetime import date
from pathlib import Path
from typing import Any

from train.run.metrics import resources

COMMITTED = Path(__file__).parent / "figures.json"
MAX_FALL = 0.10  # of a ratio, compared with the committed one
VARIANTS = ("kernel", "seats", "workers", "cores", "replay")  # what tells figures of one name apart
_ON_LOADED = 0.5  # processes that want to run, for each CPU, before anything is measured


@dataclass(frozen=True)
class Figure:
    """One figure of the table: median, least and greatest of several runs on one machine."""

    figure: str
    unit: str
    chip: str  # the kind of chip, see `chip`
    median: float
    least: float
    most: float
    runs: int
    machine: str
    date: str
    command: str
    load: float  # processes that wanted to run, for each CPU, when it was measured: 0 on a quiet machine
    target: float | None = None
    direction: str = "at least"


def chip() -> str:
    """The kind of this CPU, as far as ratios depend on it: maker, family, and what it multiplies bfloat16 with.

    AMD's family 26 does in one step what 25 does in two with the same instructions: 333 and 192 GFLOP/s in bfloat16.
    """
    text = Path("/proc/cpuinfo").read_text() if Path("/proc/cpuinfo").exists() else ""
    maker = next((name for word, name in (("AuthenticAMD", "AMD"), ("GenuineIntel", "Intel")) if word in text), "other")
    families = [line.partition(":")[2].strip() for line in text.splitlines() if line.startswith("cpu family")]
    family = f" family {families[0]}" if families else ""
    flags = next((line.split() for line in text.splitlines() if line.startswith("flags")), [])
    formats = (("amx_bf16", "AMX"), ("avx512_bf16", "AVX512-BF16"), ("avx512f", "AVX-512"), ("avx2", "AVX2"))
    return f"{maker}{family} {next((name for flag, name in formats if flag in flags), 'no AVX2')}"


def machine() -> str:
    """The CPU by name, and how many of them this process may use."""
    text = Path("/proc/cpuinfo").read_text() if Path("/proc/cpuinfo").exists() else ""
    models = [line.partition(":")[2].strip() for line in text.splitlines() if line.startswith("model name")]
    return f"{models[0] if models else 'unknown CPU'}, {resources.cpus()} cores"


def load() -> float:
    """Processes that want to run for each CPU, over the last minute."""
    return round(os.getloadavg()[0] / resources.cpus(), 2)


def is_quiet() -> bool:
    """Whether figures that are measured now are worth keeping."""
    return load() <= _ON_LOADED


def name_of(line: dict[str, Any]) -> str:
    """What a reported line is called: its figure, and its variant if there are several."""
    variants = [f"{key} {line[key]}" for key in VARIANTS if key in line]
    return " ".join([line["figure"], *([f"({', '.join(variants)})"] if variants else [])])


def summed_up(lines: Iterable[dict[str, Any]], command: str, busy: float) -> list[Figure]:
    """Lines of several runs as figures with their spread, in the order in which they came first."""
    values: dict[str, list[float]] = {}
    newest: dict[str, dict[str, Any]] = {}
    for line in lines:
        values.setdefault(name_of(line), []).append(line["value"])
        newest[name_of(line)] = line
    here = {"chip": chip(), "machine": machine(), "date": date.today().isoformat(), "command": command, "load": busy}
    return [
        Figure(
            figure=name,
            unit=newest[name]["unit"],
            median=statistics.median(found),
            least=min(found),
            most=max(found),
            runs=len(found),
            target=newest[name].get("target"),
            direction=newest[name].get("direction", "at least"),
            **here,
        )
        for name, found in values.items()
    ]


def committed(path: Path = COMMITTED) -> list[Figure]:
    """The figures of the committed table. Raises ValueError with the file's name when it is damaged."""
    try:
        return [Figure(**each) for each in json.loads(path.read_text())]
    except FileNotFoundError:
        return []
    except (json.JSONDecodeError, TypeError) as error:
        raise ValueError(f"{path}: {error}; restore it with git checkout") from error


def commit(figures: Sequence[Figure], path: Path = COMMITTED) -> None:
    """Put these in place of those of the same name and kind of chip; the others stay."""
    there = {(each.figure, each.chip): each for each in committed(path)}
    there |= {(each.figure, each.chip): each for each in figures}
    text = ",\n".join(json.dumps(asdict(each)) for each in there.values())
    beside = path.with_suffix(".new")
    beside.write_text(f"[\n{text}\n]\n")
    beside.replace(path)


@dataclass(frozen=True)
class Guarded:
    """A ratio that `make bench-quick` looks after."""

    figure: str
    any_chip: bool = False  # it is the same on every kind of chip


def fallen(value: float, before: Figure) -> bool:
    """Whether it is worse than the committed median by more than `MAX_FALL`."""
    if before.direction == "at most":
        return value > before.median * (1 + MAX_FALL)
    return value < before.median * (1 - MAX_FALL)


def reference(guarded: Guarded, table: Sequence[Figure], kind: str) -> Figure | None:
    """The committed figure to compare with on a chip of this kind."""
    of_name = [each for each in table if each.figure == guarded.figure]
    of_kind = [each for each in of_name if each.chip == kind]
    return next(iter(of_kind or (of_name if guarded.any_chip else [])), None)


def compare(
    guarded: Sequence[Guarded], measured: dict[str, float], table: Sequence[Figure], kind: str
) -> tuple[list[str], list[str]]:
    """Lines on what is as it was, or cannot be compared, and lines on what has fallen, one for each guarded figure.

    A figure that was not measured has fallen, whatever is committed: what measures it is broken.
    """
    fine, worse = [], []
    for each in guarded:
        before, now = reference(each, table, kind), measured.get(each.figure)
        if now is None:
            committed_one = f"committed {before.median:.4g}" if before else f"none committed for {kind}"
            worse.append(f"{each.figure}: {committed_one}, not measured now")
        elif before is None:
            fine.append(f"{each.figure}: {now:.4g}; no committed figure for this kind of chip ({kind})")
        elif fallen(now, before):
            worse.append(f"{each.figure}: committed {before.median:.4g}, now {now:.4g}, worse by more than 10%")
        else:
            fine.append(f"{each.figure}: committed {before.median:.4g}, now {now:.4g}")
    return fine, worse
