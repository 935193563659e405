"""Comparisons by `make bench-quick` and of strength, and their output: worked by hand, without measuring anything."""

import json
import re
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from busso.evaluate.report.drawing import COLOURS
from busso.train.settings.resolve import settings_of
from tests.bench import __main__ as bench
from tests.bench import figures, guard, timing
from tests.bench.figures import Figure, Guarded, compare, fallen
from tests.bench.strength import compare as sides_compared
from tests.bench.strength import curves, peers, sides
from tests.bench.strength.curves import Curve, Point

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


SHARES = [0.50, 0.74, 0.76, 0.74, 0.79, 0.81, 0.80, 0.86]
POINTS = [Point(10.0 * k, 5.0 * k, {"random": share, "greedy": share - 0.25}) for k, share in enumerate(SHARES, 1)]
CURVE = Curve("a", "a command", POINTS, 80.0, 40.0, 4.0)


@pytest.mark.parametrize(
    ("opponent", "level", "cpu"),
    [
        ("random", 0.50, 10),
        ("random", 0.75, 50),  # reached at 30, but not at 40
        ("random", 0.80, 60),  # and exactly at 70
        ("random", 0.85, 80),  # the last evaluation
        ("random", 0.875, None),
        ("greedy", 0.50, 50),
    ],
)
def test_a_level_is_reached_when_two_in_a_row_are_there(opponent: str, level: float, cpu: float | None) -> None:
    found = CURVE.reached(opponent, level)
    assert (None if found is None else (found.cpu, found.wall)) == (None if cpu is None else (cpu, cpu / 2))


def test_the_table_the_picture_and_what_is_kept(tmp_path: Path) -> None:
    lines = list(curves.table([CURVE]))
    assert lines[0] == "| hands won against | a |"
    assert "| `random` 80% | 60 / 30 |" in lines and "| `random` 87.5% | not reached |" in lines
    assert lines[-2:] == ["| whole run | 80 / 40 |", "| best against `random` and `greedy` | 86.0%, 61.0% |"]
    assert curves.of_json(json.loads(json.dumps(curves.to_json([CURVE], {"date": "today"})))) == [CURVE]
    curves.draw([CURVE], tmp_path / "picture.png")
    assert (tmp_path / "picture.png").read_bytes().startswith(b"\x89PNG")


def test_the_picture_has_bands_and_labelled_levels_in_the_colours_of_reports(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found: list[Any] = []
    monkeypatch.setattr(curves, "png", lambda figure: found.append(figure) or b"")
    curves.draw([CURVE, replace(CURVE, name="b")], tmp_path / "picture.png")
    for axis, levels in zip(found[0].axes, curves.LEVELS.values(), strict=True):
        assert [text.get_text() for text in axis.texts] == [f"{100 * level:g}%" for level in levels]
        assert [line.get_color() for line in axis.lines[:2]] == [*COLOURS[:2]] and len(axis.collections) == 2
        low, high = axis.collections[0].get_datalim(axis.transData).intervaly
        shares = axis.lines[0].get_ydata()
        assert low < min(shares) and high > max(shares)
    assert curves.half_width(0.5) == pytest.approx(1.96 * 0.5 / 32, abs=1e-4)  # 1,024 deals, won or lost as a whole


def test_the_page_is_that_of_the_kept_curves() -> None:
    """`python -m tests.bench time_to_strength --page` writes the same lines."""
    text = sides_compared.PAGE.read_text()
    between = text.split(sides_compared.BEGIN)[1].split(sides_compared.END)[0]
    assert between.strip().splitlines() == sides_compared.page(json.loads(sides_compared.KEPT.read_text()))
    assert sides_compared.PICTURE.exists()


def writing(seconds: float, file: Path) -> list[str]:
    """Return a program that twice burns CPU seconds in a child and writes an evaluation."""
    row = '{"random": 0.9, "greedy": 0.5, "evaluating": 0.25}\\\\n'
    spins = f"import time; [None for _ in iter(lambda: time.process_time() < {seconds}, False)]"
    turn = f"subprocess.run([sys.executable, '-c', {spins!r}]); open({str(file)!r}, 'a').write('{row}'); time.sleep(1)"
    return [sys.executable, "-c", f"import subprocess, sys, time\nfor _ in range(2): {turn}".replace("\\\\n", "\\n")]


def test_evaluations_are_timed_as_they_are_written(tmp_path: Path) -> None:
    """CPU seconds of descendants count, even after they end; sleep does not."""
    file = tmp_path / "points.jsonl"
    side = sides.Side("a side", writing(0.3, file), lambda: sides.of_lines(file))
    (found,) = sides.run([side], tmp_path, 60)
    first, second = found.points
    assert first.won == {"random": 0.9, "greedy": 0.5} and found.evaluating == 0.25
    assert first.cpu >= 0.3 and first.cpu + 0.25 <= second.cpu == found.cpu
    assert second.wall >= first.wall + 1


def test_a_side_that_fails_is_an_error(tmp_path: Path) -> None:
    side = sides.Side("a side", [sys.executable, "-c", "print('why'); raise SystemExit(3)"], list)
    with pytest.raises(RuntimeError, match=re.escape("a side: exit code 3, 0 evaluations\nwhy")):
        sides.run([side], tmp_path, 60)


def test_rows_of_a_run_that_are_evaluations(tmp_path: Path) -> None:
    """The last line is incomplete."""
    file = tmp_path / "metrics.csv"
    assert sides.of_metrics(file) == []
    head = "env_steps,train/loss,eval/win_rate_vs_random,eval/win_rate_vs_greedy"
    file.write_text(f"{head}\n1,0.5,,\n2,,0.75,0.5\n3,0.4,,\n4,,0.8,0.6\n5,,0.9,0.")
    assert sides.of_metrics(file) == [{"random": 0.75, "greedy": 0.5}, {"random": 0.8, "greedy": 0.6}]


def test_when_a_peer_is_evaluated(tmp_path: Path) -> None:
    """Every second of 180 at first; from 10 s on, after another tenth; and at the end. Evaluation time counts."""
    now, file = [2.0], tmp_path / "points.jsonl"
    watch = peers.Watch(file, 180.0, 2, clock=lambda: now[0])

    def at(seconds: float) -> int:
        now[0] = seconds
        watch.look(lambda seen, mask: mask.argmax(axis=1), 40)
        return len(file.read_text().splitlines())

    assert [at(seconds) for seconds in (2.0, 2.9, 3.0, 100.0, 109.9, 110.0, 180.0)] == [1, 1, 2, 3, 3, 4, 5]
    assert watch.spent() == 1.0


@pytest.mark.parametrize("name", peers.PEERS)
def test_a_peer_learns_until_its_time_is_up(name: str, tmp_path: Path) -> None:
    """CPU time of the process, so this one gets four seconds beyond what it has used, for its imports, too."""
    pytest.importorskip("sb3_contrib", reason="needs sb3-contrib")
    file = tmp_path / "points.jsonl"
    seconds = f"--seconds={time.process_time() + 4}"
    assert peers.main([name, str(file), seconds, "--deals=16", *sides.SETTINGS[name].split()]) == 0
    last = sides.of_lines(file)[-1]
    assert last["decisions"] > 0 and all(0 <= last[opponent] <= 1 for opponent in peers.OPPONENTS)


def test_a_comparison_is_kept(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kept: list[dict[str, Any]] = []
    ran: list[sides.Side] = []

    def run(together: Sequence[sides.Side], folder: Path, limit: float) -> list[Curve]:
        ran.extend(together)
        return [replace(CURVE, name=each.name) for each in together]

    monkeypatch.setattr(sides, "run", run)
    monkeypatch.setattr(sides_compared, "KEPT", tmp_path / "kept.json")
    monkeypatch.setattr(sides_compared, "write_page", kept.append)
    assert bench.main(["time_to_strength", "--minutes", "3", "--peer-minutes", "4", "--commit"]) == 0
    found = curves.of_json(json.loads((tmp_path / "kept.json").read_text()))
    assert [each.name for each in found] == list(sides.NAMES.values()) and len(kept) == 1
    assert "| hands won against | busso train | single-file DQN | MaskablePPO |" in capsys.readouterr().out
    assert settings_of(ran[0].command[3:]).training_minutes == 3 and "--seconds=240" in ran[1].command
