"""Comparison by `make bench-quick` and output of `make bench`: worked by hand, without measuring anything."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tests.bench import __main__ as bench
from tests.bench import figures, guard, timing
from tests.bench.figures import Figure, Guarded, compare, fallen

HERE, ELSEWHERE = "AMD AVX512-BF16", "Intel AVX2"
BEFORE = Figure("speed", "ratio", HERE, 0.8, 0.78, 0.81, 5, "a machine", "2026-01-01", "a command", 0.0)
SHARE = replace(BEFORE, figure="share", median=0.1, direction="at most")


@pytest.mark.parametrize(("change", "falls"), [(0.89, True), (0.91, False), (1.0, False), (5.0, False)])
def test_a_fall_of_more_than_a_tenth(change: float, falls: bool) -> None:
    assert fallen(change * BEFORE.median, BEFORE) == falls
    assert fallen((2 - change) * SHARE.median, SHARE) == falls  # smaller is better


@pytest.mark.parametrize(
    ("measured", "table", "kind", "worse"),
    [
        ({"speed": 0.71, "share": 0.1}, [BEFORE, SHARE], HERE, ["speed"]),
        ({"share": 0.05}, [BEFORE, SHARE], HERE, ["speed"]),  # not measured
        ({"share": 0.05}, [], HERE, ["speed"]),  # even without a committed figure
        ({"speed": 0.1, "share": 0.1}, [BEFORE], ELSEWHERE, []),  # another kind of chip
        ({"speed": 0.1, "share": 0.5}, [BEFORE, SHARE], ELSEWHERE, ["share"]),  # which is the same on any chip
        ({"speed": 1, "share": 0.5}, [SHARE, replace(SHARE, chip=ELSEWHERE, median=0.5)], ELSEWHERE, []),
    ],
)
def test_each_fall_is_one_line(measured: dict[str, float], table: list[Figure], kind: str, worse: list[str]) -> None:
    fine, found = compare([Guarded("speed"), Guarded("share", any_chip=True)], measured, table, kind)
    assert [line.partition(":")[0] for line in found] == worse and len(fine) + len(found) == 2


def measuring(values: list[float]) -> Callable[[], None]:
    return lambda: timing.report("speed", values.pop(0), "ratio")


def broken() -> None:
    raise RuntimeError("broken")


def test_what_has_fallen_is_measured_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Noise is not a fall: the best of three counts. Unmeasurable figures are missing, and the others are measured."""
    monkeypatch.setattr(guard, "GUARDED", (Guarded("speed"),))
    for values, best in (([0.5, 0.79, 0.1], 0.79), ([0.5, 0.6, 0.55, 9.9], 0.6)):
        assert guard.measure([broken, measuring(values)], [BEFORE], HERE) == {"speed": best} and len(values) == 1


@pytest.mark.parametrize(("now", "code"), [([0.73], 0), ([0.71] * 3, 1), ([], 1)])
def test_the_exit_code(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], now: list[float], code: int
) -> None:
    monkeypatch.setattr(figures, "committed", lambda: [BEFORE])
    monkeypatch.setattr(figures, "chip", lambda: HERE)
    monkeypatch.setattr(guard, "MEASURING", (measuring(now) if now else broken,))
    monkeypatch.setattr(guard, "GUARDED", (Guarded("speed"),))
    assert bench.main(["--quick"]) == code
    assert capsys.readouterr().err.count("error: ") == code


def test_the_spread_of_several_runs() -> None:
    lines = [
        {"figure": "kernel", "value": value, "unit": "GFLOP/s", "kernel": name, "used": False, "target": 5}
        for value, name in ((3.0, "bfloat16"), (9.0, "float32"), (1.0, "bfloat16"), (2.0, "bfloat16"))
    ]
    short, other = figures.summed_up(lines, "a command", 0.2)
    assert (short.figure, short.median, short.least, short.most) == ("kernel (kernel bfloat16)", 2.0, 1.0, 3.0)
    assert (short.runs, short.target, short.load, short.command) == (3, 5, 0.2, "a command")
    assert (other.figure, other.runs) == ("kernel (kernel float32)", 1)
    assert list(figures.table([short]))[-1] == "| `kernel (kernel bfloat16)` | 2 GFLOP/s | 1 to 3 | 3 | at least 5 |"


def test_committed_figures_are_replaced_by_name_and_kind_of_chip(tmp_path: Path) -> None:
    path, elsewhere = tmp_path / "figures.json", replace(BEFORE, chip=ELSEWHERE)
    figures.commit([BEFORE, SHARE, elsewhere], path)
    newer = replace(BEFORE, median=0.9)
    figures.commit([newer], path)
    assert figures.committed(path) == [newer, SHARE, elsewhere]


def test_runs_are_processes_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a program that reports one figure and fails: the figure is kept, and the exit code shows the failure."""
    line = "{'figure': 'speed', 'value': os.getpid(), 'unit': 's'}"
    monkeypatch.setattr(bench, "BENCH", ["-c", f"import json, os; print(json.dumps({line})); raise SystemExit(1)"])
    kept: list[Figure] = []
    monkeypatch.setattr(figures, "commit", kept.extend)
    assert bench.repeat([], "a command", 2, commit=True) == 1
    assert kept[-1].runs == 2 and kept[-1].least != kept[-1].most


def test_names_and_guarded_figures_are_known(capsys: pytest.CaptureFixture[str]) -> None:
    assert bench.main(["nonsense"]) == 2 and "random_play" in capsys.readouterr().err
    assert bench.main(["--runs", "5", "time_to_strength"]) == 2 and "name it first" in capsys.readouterr().err
    assert set(guard.MEASURING) <= {function for module in bench.MODULES for function in module.FIGURES}
