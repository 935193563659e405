"""`busso compare`: groups of runs, the table with intervals over seeds, and games played for it."""

import csv
import json
import re
import shutil
from math import isnan
from pathlib import Path
from statistics import stdev

import pytest

from busso.cards.duplicate import Estimate
from busso.command.plain_console import PlainConsole
from busso.evaluate.compare import main as compare
from busso.evaluate.report import of_runs
from busso.evaluate.report.drawing import Interval
from busso.evaluate.report.of_runs import Comparison, over_seeds, scores_of, screen
from busso.evaluate.report.runs import SeedGroup, kinds_of
from busso.train.__main__ import main as train
from busso.train.run.read import load_run
from tests.errors import key_of
from tests.evaluate.pages import sections, text_of_page


def rows(folder: Path) -> dict[tuple[str, str], dict[str, str]]:
    """Return the rows of results.csv by row of the table and seed."""
    with (folder / "results.csv").open(newline="") as file:
        return {(row["row"], row["seed"]): row for row in csv.DictReader(file)}


def row_of(folder: Path, name: str) -> list[str]:
    """Return the cells of a row of the first table."""
    lines = text_of_page(folder).partition("## Comparison")[2].partition("\n## ")[0].splitlines()
    (line,) = [line for line in lines if line.startswith(f"| `{name}` |")]
    return [cell.strip() for cell in line.strip("|").split("|")]


def test_a_comparison(runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert compare([*(str(runs / name) for name in ("one", "two", "wide")), f"folder={tmp_path}"]) == 0
    assert "95% interval over seeds" in " ".join(capsys.readouterr().out.split())
    assert sections(tmp_path) == ["Comparison", "Results", "Curves over decisions", "Curves over time", "Runs"]
    assert "3 runs of tressette in 2 rows" in text_of_page(tmp_path)
    won = {name: json.loads((runs / name / "results.json").read_text()) for name in ("one", "two", "wide")}
    value, half = over_seeds([won[name]["random"]["win_rate"][0] for name in ("one", "two")])
    own = row_of(tmp_path, "one")
    assert (
        own[1] == "`learner.lr=0.001` `network.hidden=[16,16]`"
        and own[2] == f"{100 * value:.1f} ± {100 * half:.1f}%"
        and own[-2:] == ["", "2"]
    )
    more = [won["wide"][name]["win_rate"][0] - won["one"][name]["win_rate"][0] for name in ("random", "greedy")]
    other = row_of(tmp_path, "wide")
    assert other[1] == "`learner.lr=0.002` `network.hidden=[48]`" and other[-2:] == [f"{50 * sum(more):+.1f} pp", "1"]
    assert float(rows(tmp_path)["one", "2"]["greedy"]) == won["two"]["greedy"]["win_rate"][0]
    capsys.readouterr()
    given = [*(str(runs / name) for name in ("one", "wide")), f"folder={tmp_path}", "baseline=wide"]
    assert compare([*given, "--json"]) == 0
    printed = {row["run"]: row["greedy"] for row in json.loads(capsys.readouterr().out)}
    assert printed == {str(runs / name): won[name]["greedy"]["win_rate"][0] for name in ("one", "wide")}
    assert [row_of(tmp_path, name)[1] for name in ("wide", "one")] == [other[1], own[1]]
    assert row_of(tmp_path, "one")[-2] == f"{0 - 50 * sum(more):+.1f} pp"  # no -0.0


def test_differences_of_all_pairs_of_rows_are_drawn_with_their_intervals(
    runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By hand: 1 minus 2 over the seeds is 0.1 and 0.3, on average 0.2; one seed alone has no interval."""
    loaded = [load_run(runs / name) for name in ("one", "two", "wide")]
    kinds = [SeedGroup("first", loaded[:2]), SeedGroup("second", loaded[:2]), SeedGroup("third", loaded[2:])]
    shares = {"first": (0.6, 0.9), "second": (0.5, 0.6), "third": (0.4,)}
    found: list[Interval] = []
    with monkeypatch.context() as patched:
        draw = of_runs.interval_figure
        patched.setattr(of_runs, "interval_figure", lambda rows, label: found.extend(rows) or draw(rows, label))
        comparison = Comparison(kinds, kinds[0], {run.folder: {} for run in loaded})
        patched.setattr(Comparison, "common", ["random"])
        patched.setattr(Comparison, "_means", lambda _, kind: dict(enumerate(shares[kind.name], start=1)))
        blocks = list(comparison._figure())
    names = {row.name: row for row in found}
    pair = names["first minus second"]
    assert pair.mean == pytest.approx(20) and pair.high == pytest.approx(20 + 12.7062 * 10, abs=0.01)
    assert set(names) == {"first minus second", "first minus third", "second minus third"}
    assert isnan(names["second minus third"].low) and "second minus third" in blocks[0].svg


@pytest.mark.parametrize("columns", [80, 100, 200])
def test_on_a_screen_no_name_is_broken_and_no_column_clipped(
    columns: int, runs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    loaded = [load_run(runs / name) for name in ("one", "two", "wide")]
    kinds = kinds_of(loaded)
    scores = {run.folder: {"monte_carlo:samples:100": Estimate(0.5, 0.4, 0.6), **scores_of(run)} for run in loaded}
    console = PlainConsole(width=columns)
    console.print(screen(Comparison(kinds, kinds[0], scores), console))
    text = capsys.readouterr().out
    lines = text.splitlines()
    assert all(len(line) <= columns for line in lines) and "…" not in text
    for whole in ("samples:100", "learner.lr=0.001", "network.hidden=[16,16]", "(40.0 to 60.0)", "greedy"):
        assert any(whole in line for line in lines), whole


def test_what_keeps_a_difference_from_being_decided(runs: Path) -> None:
    """Runs of one seed and of different lengths, as left by a timed sweep on a busy machine."""

    def note(episodes: dict[str, int]) -> str:
        loaded = [load_run(runs / name) for name in episodes]
        for run in loaded:
            vars(run)["counters"] = {"episodes": episodes[run.name]}
        kinds = kinds_of(loaded)
        return Comparison(kinds, kinds[0], {run.folder: scores_of(run) for run in loaded}).note()

    found = note({"one": 4096, "wide": 2560})
    assert re.search(r"One seed each: undecided\. Episodes differ: (4,096 and 2,560|2,560 and 4,096)\.", found)
    found = note({"one": 4096, "two": 4097, "wide": 4200})
    assert "A difference without ± is of one seed: undecided." in found and "Episodes" not in found
    assert "Episodes differ: 2,560 to 4,400." in note({"one": 4096, "two": 4400, "wide": 2560})
    assert "undecided" not in note({"one": 4096, "two": 4096})
    assert "One seed each: undecided." in note({"two": 4096, "wide": 4096})  # and no difference, since the seeds differ


def test_games_are_played_for_it(runs: Path, tmp_path: Path) -> None:
    """`baseline` is the first row's run with the same seed. Played games are kept."""
    given = [
        *(str(runs / name) for name in ("one", "two", "wide")),
        f"folder={tmp_path}",
        "opponents=[random,baseline]",
    ]
    assert compare([*given, "deals=64"]) == 0
    found = rows(tmp_path)
    assert found["one", "1"]["baseline"] == "" and 0 < float(found["wide", "1"]["baseline"]) < 1
    assert all(float(found[row]["random"]) > 0 for row in (("one", "1"), ("one", "2"), ("wide", "1")))
    kept = (tmp_path / "games" / "batches.jsonl").read_bytes()
    assert compare([*given, "deals=64"]) == 0
    assert rows(tmp_path) == found and (tmp_path / "games" / "batches.jsonl").read_bytes() == kept


def test_a_pattern_names_runs(runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pattern = f"{tmp_path}/g,seed=*"
    assert compare([pattern]) == 2
    assert key_of(capsys.readouterr().err) == "run"
    (tmp_path / "multirun.yaml").touch()  # as left by a sweep
    for seed, name in ((1, "one"), (3, "two")):
        shutil.copytree(runs / name, tmp_path / f"g,seed={seed}")
    for given in ([pattern], [f"{tmp_path}/*", str(tmp_path / "g,seed=1")]):
        assert compare(given) == 0
        assert row_of(tmp_path / "compare", "g")[-1] == "2"


def test_tables_of_small_games(tmp_path: Path) -> None:
    """Sorted by least error."""
    budget = ["episodes=60000", "log_every_episodes=20000", "min_visits=100", f"runs={tmp_path}"]
    assert train(["--multirun", "algo=q_learning", "game=blackjack", "epsilon=0.2,0.4", *budget]) == 0
    (page,) = (folder / "compare" for folder in tmp_path.iterdir())
    assert compare([f"{page.parent}/*"]) == 0
    errors = [float(row["loss"]) for row in rows(page).values()]
    assert 0 < errors[0] < errors[1]


def test_beyond_the_table_of_quantiles() -> None:
    """Published: 2.262 for 9 degrees of freedom, 2.228 for 10, 2.086 for 20, 1.984 for 100."""
    for freedom, quantile in ((9, 2.262), (10, 2.228), (20, 2.086), (100, 1.984)):
        scores = [float(seed) for seed in range(freedom + 1)]
        _, half = over_seeds(scores)
        assert half * len(scores) ** 0.5 / stdev(scores) == pytest.approx(quantile, abs=0.003)


def test_over_seeds_by_hand() -> None:
    """0.5, 0.6 and 0.7 have mean 0.6 and standard deviation 0.1; the quantile for two degrees is 4.302653."""
    assert over_seeds([0.5, 0.6, 0.7]) == pytest.approx((0.6, 4.302653 * 0.1 / 3**0.5))


def test_runs_of_the_same_seed_are_no_seeds_of_one(runs: Path, tmp_path: Path) -> None:
    shutil.copytree(runs / "one", tmp_path / "again")
    kinds = kinds_of([load_run(folder) for folder in (runs / "one", tmp_path / "again", runs / "two")])
    assert [[run.name for run in kind.runs] for kind in kinds] == [["one", "two"], ["again"]]


def test_runs_of_one_name_stay_apart(runs: Path, tmp_path: Path) -> None:
    """In two clones, where the last three parts of the paths are the same too."""
    folders = [tmp_path / clone / "runs" / "tressette" / "default" for clone in ("a", "b")]
    for folder, name in zip(folders, ("one", "wide"), strict=True):
        shutil.copytree(runs / name, folder)
    names = [kind.name for kind in kinds_of(list(map(load_run, folders)))]
    assert names == ["a/runs/tressette/default", "b/runs/tressette/default"]
    assert compare([*map(str, folders), f"folder={tmp_path / 'page'}"]) == 0
    text = text_of_page(tmp_path / "page")
    assert all(f"| `{name}` |" in text for name in names)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["one"], "two run folders"),
        (["one", "one"], "twice"),
        (["one", "nowhere"], "nowhere"),
    ],
)
def test_what_cannot_be_compared_is_one_line(
    runs: Path, arguments: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert compare([str(runs / name) for name in arguments]) == 2
    error = capsys.readouterr().err
    assert key_of(error) == "run" and says in error
