"""What `make bench-quick` compares, and what `make bench` writes down: worked by hand, without measuring anything."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tests.bench import __main__ as bench
from tests.bench import figures, guard, page, runs, timing
from tests.bench.figures import Figure, Guarded, compare, fallen

HERE, ELSEWHERE = "AMD AVX512-BF16", "Intel AVX2"
BEFORE = Figure("speed", "ratio", HERE, 0.8, 0.78, 0.81, 5, "a machine", "2026-01-01", "a command", 0.0)
SHARE = replace(BEFORE, figure="share", median=0.1, direction="at most")


def verdicts(measured: dict[str, float], table: list[Figure], kind: str = HERE) -> tuple[list[str], list[str]]:
    return compare([Guarded(each.figure) for each in (BEFORE, SHARE)], measured, table, kind)


@pytest.mark.parametrize(("change", "falls"), [(0.89, True), (0.91, False), (1.0, False), (5.0, False)])
def test_a_fall_of_more_than_a_tenth(change: float, falls: bool) -> None:
    assert fallen(change * BEFORE.median, BEFORE) == falls


@pytest.mark.parametrize(("change", "falls"), [(1.11, True), (1.09, False), (1.0, False), (0.2, False)])
def test_what_should_be_small_rises_by_more_than_a_tenth(change: float, falls: bool) -> None:
    assert fallen(change * SHARE.median, SHARE) == falls


def test_each_fall_is_one_line_with_both_values() -> None:
    fine, worse = verdicts({"speed": 0.71, "share": 0.1}, [BEFORE, SHARE])
    assert worse == ["speed: committed 0.8, now 0.71, worse by more than 10%"]
    assert fine == ["share: committed 0.1, now 0.1"]


def test_a_missing_figure_is_named() -> None:
    fine, worse = verdicts({"share": 0.05}, [BEFORE, SHARE])
    assert worse == ["speed: committed 0.8, not measured now"] and len(fine) == 1


def test_another_kind_of_chip_is_not_compared() -> None:
    fine, worse = verdicts({"speed": 0.1, "share": 0.1}, [BEFORE], ELSEWHERE)
    assert not worse and fine[0] == "speed: 0.1; no committed figure for this kind of chip (Intel AVX2)"
    same = [Guarded("speed", any_chip=True)]
    assert compare(same, {"speed": 0.1}, [BEFORE], ELSEWHERE)[1]  # a figure that no chip changes
    own = replace(BEFORE, chip=ELSEWHERE, median=0.1)
    assert not compare(same, {"speed": 0.1}, [BEFORE, own], ELSEWHERE)[1]  # its own kind comes first


def measuring(values: list[float], figure: str = "rollout_over_forward") -> Callable[[], None]:
    return lambda: timing.report(figure, values.pop(0), "ratio")


def test_what_has_fallen_is_measured_again() -> None:
    """Noise is no fall: the best of three counts."""
    table = [replace(BEFORE, figure="rollout_over_forward")]
    values = [0.5, 0.79, 0.1]
    assert guard.measure([measuring(values)], table, HERE) == {"rollout_over_forward": 0.79} and values == [0.1]
    values = [0.5, 0.6, 0.55, 9.9]
    assert guard.measure([measuring(values)], table, HERE) == {"rollout_over_forward": 0.6} and values == [9.9]


def test_what_cannot_be_measured_is_missing_and_the_rest_is_measured() -> None:
    def broken() -> None:
        raise RuntimeError("broken")

    table = [BEFORE, replace(BEFORE, figure="rollout_over_forward")]
    measured = guard.measure([broken, measuring([0.8])], table, HERE)
    assert measured == {"rollout_over_forward": 0.8}
    assert verdicts({"share": 0.1, **measured}, table)[1] == ["speed: committed 0.8, not measured now"]


def guarded_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, now: float) -> int:
    path = tmp_path / "figures.json"
    figures.commit([replace(BEFORE, figure="rollout_over_forward", chip=figures.chip())], path)
    table = figures.committed(path)
    monkeypatch.setattr(figures, "committed", lambda *_: table)
    monkeypatch.setattr(guard, "MEASURING", (measuring([now] * 3),))
    monkeypatch.setattr(guard, "GUARDED", (Guarded("rollout_over_forward"),))
    return bench.main(["--quick"])


def test_the_exit_code(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert guarded_run(monkeypatch, tmp_path, 0.8 * 0.91) == 0
    assert "error" not in capsys.readouterr().err
    assert guarded_run(monkeypatch, tmp_path, 0.8 * 0.89) == 1
    (said,) = capsys.readouterr().err.splitlines()
    assert said == "error: fallen  rollout_over_forward: committed 0.8, now 0.712, worse by more than 10%"


def test_what_cannot_be_measured_fails_whatever_is_committed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken() -> None:
        raise RuntimeError("broken")

    monkeypatch.setattr(figures, "committed", lambda *_: [])
    monkeypatch.setattr(figures, "chip", lambda: HERE)
    monkeypatch.setattr(guard, "GUARDED", (Guarded("rollout_over_forward"),))
    monkeypatch.setattr(guard, "MEASURING", (broken,))
    assert guard.guard() == 1
    said = capsys.readouterr().err.splitlines()[-1]
    assert said == f"error: fallen  rollout_over_forward: none committed for {HERE}, not measured now"
    monkeypatch.setattr(guard, "MEASURING", (measuring([0.1]),))
    assert guard.guard() == 0  # measured, and nothing to compare it with
    assert "no committed figure for this kind of chip" in capsys.readouterr().out


def test_the_spread_of_several_runs() -> None:
    lines = [
        {"figure": "kernel", "value": value, "unit": "GFLOP/s", "kernel": name, "used": False, "target": 5}
        for value, name in ((3.0, "bfloat16"), (9.0, "float32"), (1.0, "bfloat16"), (2.0, "bfloat16"))
    ]
    short, other = figures.summed_up(lines, "a command", 0.2)
    assert (short.figure, short.median, short.least, short.most) == ("kernel (kernel bfloat16)", 2.0, 1.0, 3.0)
    assert (short.runs, short.target, short.load, short.command) == (3, 5, 0.2, "a command")
    assert (other.figure, other.runs) == ("kernel (kernel float32)", 1)


def test_committed_figures_are_replaced_by_name_and_kind_of_chip(tmp_path: Path) -> None:
    path = tmp_path / "figures.json"
    elsewhere = replace(BEFORE, chip=ELSEWHERE)
    figures.commit([BEFORE, SHARE, elsewhere], path)
    newer = replace(BEFORE, median=0.9)
    figures.commit([newer], path)
    assert figures.committed(path) == [newer, SHARE, elsewhere]
    path.write_text("[{}]")
    with pytest.raises(ValueError, match=r"figures\.json: .*; restore it with git checkout"):
        figures.committed(path)


def test_nothing_is_committed_from_a_busy_machine(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(figures, "load", lambda: 2.5)
    assert runs.repeat(["update"], "a command", 5, commit=True, busy=False) == 2
    assert "2.5 processes want to run for each CPU" in capsys.readouterr().err


def test_runs_are_processes_of_their_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Two runs of a program that reports one figure and fails: what was measured is kept, and the exit code says so."""
    line = "{'figure': 'speed', 'value': os.getpid(), 'unit': 's'}"
    script = f"import json, os; print(json.dumps({line})); raise SystemExit(1)"
    path = tmp_path / "figures.json"
    commit = figures.commit
    monkeypatch.setattr(figures, "commit", lambda found: commit(found, path))
    monkeypatch.setattr(runs, "BENCH", ["-c", script])
    assert runs.repeat([], "a command", 2, commit=True, busy=True) == 1
    (found,) = figures.committed(path)
    assert found.runs == 2 and found.least != found.most  # two processes
    assert found.figure == "speed" and json.loads(path.read_text())[0]["chip"] == figures.chip()


def test_the_guarded_figures_alone_can_be_committed(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[object] = []
    monkeypatch.setattr(bench, "repeat", lambda *arguments: asked.extend(arguments) or 0)
    assert bench.main(["--quick", "--commit"]) == 0
    guarded = [function.__name__ for function in guard.MEASURING]
    assert asked == [guarded, "python -m tests.bench --quick --commit", 5, True, False]


def test_unknown_names_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert bench.main(["nonsense"]) == 2
    assert "no figure 'nonsense'; there are random_play" in capsys.readouterr().err


def test_guarded_figures_are_measured_by_functions_that_make_bench_runs() -> None:
    functions = {function for module in bench.MODULES for function in module.FIGURES}
    assert set(guard.MEASURING) <= functions


def test_the_page_has_the_committed_figures() -> None:
    """`python -m tests.bench --table` writes it."""
    assert page.filled(page.PAGE.read_text(), figures.committed()) == page.PAGE.read_text()


def test_tables_of_a_page() -> None:
    text = "before\n<!-- figures -->\nold\n<!-- end of figures -->\nafter\n"
    found = page.filled(text, [BEFORE, replace(SHARE, target=0.08, load=1.5)])
    assert "old" not in found and found.startswith("before\n") and found.endswith("after\n")
    assert "| `speed` | 0.8 ratio | 0.78 to 0.81 | 5 |  |" in found
    assert "| `share` | 0.1 ratio | 0.78 to 0.81 | 5 | at most 0.08 |" in found
    assert "a machine (AMD AVX512-BF16), 2026-01-01, nothing else running, `a command`:" in found
    assert "1.5 processes wanting to run for each core" in found
    assert page.filled(found, [BEFORE, replace(SHARE, target=0.08, load=1.5)]) == found
    with pytest.raises(ValueError, match="no place for"):
        page.filled("nothing", [])
