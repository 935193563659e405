"""The tables of docs/performance.md: the committed figures, and what `train.doctor.throughput_model` makes of them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from tests.bench import figures
from tests.bench.figures import Figure
from train.doctor.throughput_model import MEASURED, Load, Speeds, predict

PAGE = Path(__file__).parents[2] / "docs" / "performance.md"
LOAD = Load(
    workers=1,
    nodes=1,
    cpus=16,
    decisions=20_480,
    bytes=141.0,
    batch_size=512,
    samples_per_insert=0.5,
    publish_seconds=0.5,
    weight_bytes=8e5,
)
INSERTING = 1.7e-8  # seconds a decision: 60 million a second, by `python -m train doctor`
AIM = 5_000  # updates/s of batch 512, on a GPU


def write(page: Path = PAGE) -> int:
    """Put the tables into the page, between the comments that name them."""
    page.write_text(filled(page.read_text(), figures.committed()))
    return 0


def filled(text: str, table: Sequence[Figure]) -> str:
    """The page with its tables written anew."""
    parts: dict[str, Callable[[], Iterator[str]]] = {
        "figures": lambda: _figures(table),
        "scaling": lambda: scaling_table(table),
    }
    for name, lines in parts.items():
        pattern = rf"(<!-- {name} -->\n).*?(<!-- end of {name} -->)"
        body = "\n".join(lines())
        text, found = re.subn(pattern, lambda match, body=body: f"{match[1]}{body}\n{match[2]}", text, flags=re.S)  # type: ignore[misc]
        if not found:
            raise ValueError(f"docs/performance.md has no place for {name}: <!-- {name} --> ... <!-- end of {name} -->")
    return text


def _figures(table: Sequence[Figure]) -> Iterator[str]:
    """One table for each machine, day and command."""
    origins = list(dict.fromkeys(_origin(each) for each in table))
    for origin in origins:
        yield from (origin, "", "| figure | median | least to most | runs | to reach |", "|---|---|---|---|---|")
        for each in table:
            if _origin(each) == origin:
                target = "" if each.target is None else f"{each.direction} {each.target:g}"
                spread = f"{each.least:.4g} to {each.most:.4g}"
                yield f"| `{each.figure}` | {each.median:.4g} {each.unit} | {spread} | {each.runs} | {target} |"
        yield ""


def _origin(figure: Figure) -> str:
    quiet = "nothing else running" if figure.load < 0.1 else f"{figure.load:g} processes wanting to run for each core"
    return f"{figure.machine} ({figure.chip}), {figure.date}, {quiet}, `{figure.command}`:"


def scaling_table(table: Sequence[Figure]) -> Iterator[str]:
    """What the model makes of the committed speeds of one core."""
    speeds = _speeds(table)
    if speeds is None:
        yield "(There are no figures of `rollout` and `update` to make it of.)"
        return
    on_gpu = replace(speeds, update=1 / AIM)
    large = replace(LOAD, decisions=8 * LOAD.decisions)
    setups = (
        ("as they are", LOAD, speeds),
        (f"{AIM:,} updates/s, the aim for a GPU", LOAD, on_gpu),
        ("that, and `rollout.games=4096`", large, on_gpu),
    )
    yield f"(One worker: {1 / speeds.playing:,.0f} decisions/s. The learner: {1 / speeds.update:,.0f} updates/s.)"
    yield ""
    yield "| speeds | workers | nodes | decisions/s | busy: workers, learner, driver, store, network | limited by |"
    yield "|---|---|---|---|---|---|"
    for name, load, fast in setups:
        for workers in (10, 100, 1000):
            nodes = -(-(workers + 1) // load.cpus)
            found = predict("ray", replace(load, workers=workers, nodes=nodes), fast, MEASURED)
            stages = ("workers", "learner", "driver", "object store", "network")
            busy = ", ".join(f"{found.busy[stage]:.0%}" for stage in stages)
            limit = f"{found.limit.name}: {found.limit.change}"
            yield f"| {name} | {workers:,} | {nodes} | {found.decisions / 1e6:.2f} million | {busy} | {limit} |"


def _speeds(table: Sequence[Figure]) -> Speeds | None:
    """Those of the first kind of chip that has both figures."""
    values = {(each.chip, each.figure): each.median for each in table}
    for chip in dict.fromkeys(each.chip for each in table):
        moves, updates = values.get((chip, "rollout_moves")), values.get((chip, "learner_updates"))
        if moves and updates:
            return Speeds(playing=1 / (moves * 1e3), inserting=INSERTING, update=1 / updates)
    return None
