"""Tournaments: seatings, players by name, matches, output files, and errors."""

import csv
import dataclasses
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from itertools import combinations
from pathlib import Path
from typing import Any

import matplotlib.image
import numpy as np
import pytest
import torch

from busso.cards.compiled.splitmix import stream
from busso.cards.duplicate import Duel, Outcome, Plays, duel, duel_of
from busso.cards.game import Game, PlayerKind, load_game
from busso.cards.match import play_matches
from busso.cards.play import Player
from busso.cards.players import PolicyPlayer, SampleOptions, named_player
from busso.command.plain_console import PlainConsole
from busso.command.settings.checks import SettingsError
from busso.command.settings.compose import compose
from busso.evaluate.replay import replay_file
from busso.evaluate.tournament import report
from busso.evaluate.tournament.__main__ import main
from busso.evaluate.tournament.batches import Timing
from busso.evaluate.tournament.ratings import rate
from busso.evaluate.tournament.settings import TournamentSettings
from busso.play.table.seats import seated_player
from busso.train.network.q_network import NetworkPlayer
from busso.train.players.load import player_from_text
from busso.train.players.resolve import resolve
from busso.train.run import checkpoint
from busso.train.run.checkpoint import CheckpointError
from busso.tressette import GAME
from tests.chips import Chip
from tests.errors import error_about, key_of
from tests.evaluate.pages import sections, text_of_page
from tests.train.runs import TrainedRuns

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def runs(trained_run: TrainedRuns) -> Path:
    """Return a folder with one small trained run."""
    return trained_run().parents[1]


def test_tournament_writes_table_csv_json_and_games(
    runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = runs / "tressette" / "small"
    out = tmp_path / "out"
    arguments = [f"players=[{run},greedy,random]", "deals=64", "seed=7", f"folder={out}", "records=3"]
    assert main(arguments) == 0
    table = capsys.readouterr().out
    assert "greedy" in table and "±" in table
    with (out / "results.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [(row["first"], row["second"]) for row in rows] == [
        (str(run), "greedy"),
        (str(run), "random"),
        ("greedy", "random"),
    ]
    document = json.loads((out / "results.json").read_text())
    assert document["settings"]["seed"] == 7 and len(document["pairs"]) == 3
    for row, pair in zip(rows, document["pairs"], strict=True):
        assert float(row["first_won"]) == pair["first_won"] and int(row["deals"]) == 64
        assert pair["first_result"] + pair["second_result"] == pytest.approx(11)
        assert pair["margin"] == pytest.approx(pair["first_result"] - pair["second_result"])
    points = [line["points"] for line in replay_file(out / "games.jsonl")]
    assert len(points) == 3 * 2 * 3 and all(sum(both) == 11 for both in points)
    # The records are the counted games: the last pair's first deal, in both seatings.
    result = duel(GAME, named_player(GAME, "greedy"), named_player(GAME, "random"), stream(7, "tournament", 0, 64))
    assert (points[12][0] + points[15][1]) / 2 == result.own[0]


def pairs(folder: Path) -> list[dict[str, object]]:
    return json.loads((folder / "results.json").read_text())["pairs"]


SPIKE = ["game=spike", "players=[cautious,random]", "deals=32"]


def test_one_against_many(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each pair in both orders, every game recorded: two deals, the one in each of four seats, twice."""
    out = [f"folder={tmp_path}", "records=2"]
    assert main([*SPIKE, "game.seats=4", "seating=one_against_many", *out]) == 0
    table = " ".join(capsys.readouterr().out.split())
    assert "even: 25.0%" in table and "won: the highest result at the table" in table
    there, back = pairs(tmp_path)
    assert there["first"] == back["second"] == "cautious" and there["second"] == back["first"] == "random"
    assert there["first_won"] > there["even"] == back["even"] == 0.25 > back["first_won"]
    assert len((tmp_path / "games.jsonl").read_text().splitlines()) == 2 * 2 * 4
    assert not any("error" in line for line in replay_file(tmp_path / "games.jsonl"))


def test_seats_that_nobody_takes_are_not_played(tmp_path: Path) -> None:
    """In games of two to five players, a deal is played once for each player."""
    some = ["game.seats=5", "game.min_seats=2", "seating=one_against_many", f"folder={tmp_path}", "records=8"]
    assert main([*SPIKE, *some]) == 0
    game = load_game("spike", {"seats": 5, "min_seats": 2})
    players = game.occupied(game.deal(stream(7, "tournament", 0, 32))).sum(axis=1)
    assert len((tmp_path / "games.jsonl").read_text().splitlines()) == 2 * players[:8].sum()
    assert pairs(tmp_path)[0]["even"] == pytest.approx((1 / players).mean()) and np.ptp(players) > 0


BAD = {
    "seating": ("one_against_many", "round"),
    "players": (
        *("[greedy]", "[greedy,greedy]", "[greedy,gredy]", "[greedy,runs/none]", "[greedy:samples:5,random]"),
        *("[greedy,monte_carlo:sample:5]", "[greedy,seek:runs/x:samples:5]"),
        "[monte_carlo:samples:5,monte_carlo:samples:5]",
    ),
    "deals": ("0", "x"),
    "seed": ("-1",),
    "dels": ("5",),
    "device": ("tpu",),
    "folder": ("/proc/x",),
    "until": ("0", "60%", "soon", "nan"),
    "batch_deals": ("1",),
    "anchor": ("greedi",),
    "processes": ("0", "all"),
}


@pytest.mark.parametrize(("key", "value"), [(key, value) for key, values in BAD.items() for value in values])
def test_bad_setting_is_one_line(key: str, value: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([f"folder={tmp_path}", "deals=4", f"{key}={value}"]) == 2
    captured = capsys.readouterr()
    assert key_of(captured.err) == key and captured.out == ""


def test_ratings_and_times(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Ratings are consistent, and times cover every decision of 64 deals, played twice, of two pairs each."""
    players = ["greedy", "study_heuristic", "random"]
    assert main([f"players=[{','.join(players)}]", "deals=64", f"folder={tmp_path}", "anchor=random"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "% of games won by the row against the column" in text and "0 is random" in text
    document = json.loads((tmp_path / "results.json").read_text())
    with (tmp_path / "ratings.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [{key: row[key] for key in ("player", "elo")} for row in rows] == [
        {"player": rating["player"], "elo": str(rating["elo"])} for rating in document["ratings"]
    ]
    assert rows[0]["player"] == "greedy" and {row["player"] for row in rows} == set(players)
    (random,) = (row for row in rows if row["player"] == "random")
    assert float(random["elo"]) == float(random["low"]) == float(random["high"]) == 0
    assert float(rows[0]["low"]) < float(rows[0]["elo"]) < float(rows[0]["high"])
    won = {(pair["first"], pair["second"]): pair["first_won"] for pair in document["pairs"]}
    assert float(random["won"]) == pytest.approx(1 - (won["greedy", "random"] + won["study_heuristic", "random"]) / 2)
    for player in players:
        times = document["times"][player]
        # Half of the seats, 40 decisions a game; at least the last card of each hand is forced.
        assert times["decisions"] + times["forced"] == 2 * 64 * 2 * 20 and times["forced"] >= 2 * 64 * 2 * 2
        assert 0 < times["seconds"] < 5 and times["cpu_seconds"] > 0


LONG = "runs/sweeps/learner.lr=0.001,network.hidden=[192,192],seed=0"


def _results(names: list[str]) -> report.Results:
    """Return the results of a tournament, drawn at random."""
    generator = np.random.default_rng(0)
    pairs = combinations(names, 2)
    duels = {pair: Duel(generator.integers(0, 3, 64) / 2, *generator.normal(size=(2, 64))) for pair in pairs}
    rows = [report.pairing(*pair, result) for pair, result in duels.items()]
    spent = dict.fromkeys(names, Timing(1.0, 1.0, 1000, 0))
    return report.Results(GAME, compose(TournamentSettings, "tournament", []), rows, rate(duels), spent)


@pytest.mark.parametrize("players", [2, 12])
def test_a_narrow_screen_has_names_and_ratings_without_plots(players: int, capsys: pytest.CaptureFixture[str]) -> None:
    names = [LONG, *(f"player_{number}" for number in range(players - 1))]
    results = _results(names)
    report.show(results, PlainConsole(width=40))
    lines = [line.split("│")[1:-1] for line in capsys.readouterr().out.split("└")[0].splitlines() if "│" in line]
    rows = [[cell.strip() for cell in line] for line in lines]
    assert results.ratings is not None and "●" not in str(lines)
    for number, rating in enumerate(results.ratings.rows, start=1):
        at = next(k for k, row in enumerate(rows) if row[0] == str(number))
        assert rows[at][1] and rating.player.startswith(rows[at][1])
        assert rows[at][2:] == [report.elo_text(rating), f"{rating.won:.1%}"]
    assert "".join(row[1] for row in rows).count("seed=0") == 1


@pytest.mark.parametrize(("players", "columns"), [(2, 80), (4, 80), (8, 80), (4, 200), (12, 200)])
def test_a_screen_has_ratings_first_whole_names_and_each_number_once(
    players: int, columns: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """A name is broken between its parts only, and no line is longer than the screen."""
    names = [LONG, "monte_carlo:samples:10", *(f"player_{number}" for number in range(players - 2))]
    results = _results(names)
    rows = results.pairings
    report.show(results, PlainConsole(width=columns))
    text = capsys.readouterr().out
    assert all(len(line) <= columns for line in text.splitlines())
    first = text.split("└")[0]
    assert [len(re.findall(rf"{name} ", first)) for name in names[1:]] == [1] * (players - 1)
    cells = "".join(line.split("│")[2].strip() for line in first.splitlines() if line.startswith("│"))
    assert LONG in cells and all(part in first for part in ("runs/", "network.hidden=[192,", "seed=0"))
    assert first.count("●") == players and ("┊" in first or "┼" in first)
    plots = [line.split("│")[4][1:-1] for line in first.splitlines() if "●" in line]
    places = [plot.index("●") for plot in plots]
    assert places == sorted(places, reverse=True) and len({len(plot) for plot in plots}) == 1
    marks = [re.search("[┊┼]", plot) for plot in plots]
    assert len({mark.start() for mark in marks if mark}) == 1
    if players == 2:
        assert f"{rows[0].first_won:.1%} (" in text.split("┘")[1]
    else:
        assert text.count("┏") == 2 and f" {100 * rows[0].first_won:.1f} " in text.split("┘")[1]


def test_a_tournament_writes_a_page_with_pictures_for_dark_and_light(tmp_path: Path) -> None:
    """The page has every number of the pairs; pictures are files, too."""
    assert main(["players=[greedy,study_heuristic,random]", "deals=64", f"folder={tmp_path}"]) == 0
    for name in ("ratings.png", "pairs.png"):
        image = matplotlib.image.imread(tmp_path / name)
        assert image.shape[1] > 1000 and image[..., :3].std() > 0.05
    page, text = (tmp_path / "report.html").read_text(), text_of_page(tmp_path)
    assert page.count("<svg") == 2 and "currentColor" in page and "#1d2329" not in page.split("<svg", 1)[1]
    for pair in json.loads((tmp_path / "results.json").read_text())["pairs"]:
        row = f"| `{pair['first']}` | `{pair['second']}` | 64 | {pair['first_won']:.1%} ("
        assert row in text.replace("  ", " ")
        assert f">{100 * pair['first_won']:.1f}<" in page and f">{100 - 100 * pair['first_won']:.1f}<" in page
    assert sections(tmp_path) == ["Ratings", "Pairs"]


def test_pictures_that_cannot_be_written_cost_no_result(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """They come last, and importing what draws them takes longer than many a tournament."""
    (tmp_path / "ratings.png" / "there").mkdir(parents=True)
    assert main(["players=[greedy,random]", "deals=8", f"folder={tmp_path}"]) == 2
    captured = capsys.readouterr()
    assert captured.out.count("●") == 2 and (tmp_path / "ratings.csv").exists()
    assert str(tmp_path / "ratings.png") in captured.err and captured.err.count("\n") == 1
    command = "import sys, busso.evaluate.tournament.run; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", command], check=False).returncode == 0


def test_a_network_plays_on_every_chip_whatever_it_was_trained_in(runs: Path, tmp_path: Path, chip: Chip) -> None:
    """A checkpoint of a bfloat16 run on a GPU plays on a CPU."""
    state = checkpoint.load(runs / "tressette" / "small" / "checkpoints" / "best.pt")
    trained = state["settings"]["learner"] | {"precision": "bfloat16"}
    file = changed(runs, tmp_path / "half.pt", settings=state["settings"] | {"learner": trained})
    player = player_from_text(GAME, file, CPU)
    assert isinstance(player, NetworkPlayer)
    hidden = {parameter.dtype for parameter in player._network.body.parameters()}
    assert hidden == {getattr(torch, chip.format)}
    assert main([f"players=[{file},greedy]", "deals=8", f"folder={tmp_path / 'out'}", "game=tressette"]) == 0
    with (tmp_path / "out" / "results.csv").open() as table:
        (row,) = csv.DictReader(table)
    assert row["first"] == file and 0 <= float(row["first_won"]) <= 1


def test_damaged_best_falls_back_and_says_so(runs: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    run = tmp_path / "run"
    shutil.copytree(runs / "tressette" / "small", run)
    (run / "checkpoints" / "best.pt").write_bytes(b"nothing")
    player_from_text(GAME, str(run), CPU)
    assert "best.pt: not a checkpoint" in caplog.text and "is used" in caplog.text
    for path in checkpoint.listed(run / "checkpoints"):
        path.write_bytes(path.read_bytes()[:-1])
    with error_about(CheckpointError, run / "checkpoints", hint="restore one"):
        player_from_text(GAME, str(run), CPU)
    with error_about(CheckpointError, tmp_path, hint="train it first"):
        player_from_text(GAME, str(tmp_path), CPU)


def changed(runs: Path, path: Path, **changes: object) -> str:
    """Write a checkpoint with some entries replaced."""
    state = checkpoint.load(runs / "tressette" / "small" / "checkpoints" / "best.pt")
    checkpoint.save(path, state | changes)
    return str(path)


def test_network_of_another_shape_is_refused(runs: Path, tmp_path: Path) -> None:
    state = checkpoint.load(runs / "tressette" / "small" / "checkpoints" / "best.pt")
    wide = state["settings"] | {"network": {"hidden": [64], "dueling": False}}
    for settings in (wide, 3):
        with error_about(CheckpointError, tmp_path / "a.pt"):
            player_from_text(GAME, changed(runs, tmp_path / "a.pt", settings=settings), CPU)


ACCUSI = load_game("tressette", {"accusi": True})
MATCH = ["match=21", "deals=24", "game.accusi=true", "processes=1"]


def pair(folder: Path) -> dict[str, float]:
    (only,) = json.loads((folder / "results.json").read_text())["pairs"]
    return only


def test_a_tournament_of_matches(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*MATCH, f"folder={tmp_path}", "records=5", "batch_deals=7"]) == 0
    table = " ".join(capsys.readouterr().out.split())
    assert "tressette, matches to 21, 24 duplicate deals" in table and "of matches won" in table
    players = named_player(ACCUSI, "greedy"), named_player(ACCUSI, "random")

    def played(plays: Plays) -> Outcome:
        matches = play_matches(ACCUSI, plays.seeds, players, plays.sides, 21, private=plays.private)
        return matches.results(), np.ones(plays.sides.shape, np.bool_)

    duel = duel_of(ACCUSI, played, stream(7, "tournament", 0, 24))
    found = pair(tmp_path)
    assert found["first_won"] == duel.win_rate.mean and found["first_won_low"] == duel.win_rate.low
    assert (found["first_result"], found["second_result"]) == (duel.own.mean(), duel.other.mean())
    results = list(replay_file(tmp_path / "games.jsonl"))
    assert not [result for result in results if "error" in result]
    ends = {result["match"]: result["score"] for result in results}
    assert len(ends) == 2 * 5
    there, back = ends["greedy - random, deal 4, play 1"], ends["greedy - random, deal 4, play 2"]
    assert ((there[0] + back[1]) / 2, (there[1] + back[0]) / 2) == (duel.own[3], duel.other[3])


def test_records_change_no_result(tmp_path: Path) -> None:
    for name, records in (("with", "24"), ("without", "0")):
        assert main([*MATCH, f"folder={tmp_path / name}", f"records={records}"]) == 0
    assert pair(tmp_path / "with") == pair(tmp_path / "without")


NO_MATCH = {
    "match=20": "match: tressette is played to one of 11, 21, 31, 41, not 20; null plays single games",
    "match=x": "match: expected an integer, not x",
    "game=spike": "match: spike is not played in matches to a score; null plays single games",
    "seating=one_against_many": "seating: one_against_many needs seats that each play for themselves",
}


@pytest.mark.parametrize("override", NO_MATCH)
def test_bad_match_is_one_line(override: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    overrides = [each for each in MATCH if override != "game=spike" or not each.startswith("game.")]
    assert main([*overrides, f"folder={tmp_path}", override]) == 2
    error = capsys.readouterr().err
    assert NO_MATCH[override] in error and error.count("\n") == 1


def test_a_folder_is_of_matches_to_one_score(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = [*MATCH, f"folder={tmp_path}", "deals=2", "players=[greedy,random,study_heuristic]"]
    assert main(arguments) == 0
    assert "% of matches won by the row" in " ".join(capsys.readouterr().out.split())
    assert main([*arguments, "match=11"]) == 2
    assert key_of(capsys.readouterr().err) == "match"


def test_players_made_of_a_network(trained_run: TrainedRuns) -> None:
    """`name:RUN:key=value` passes options and network to the kind's constructor."""
    made: list[tuple[Any, ...]] = []

    def make(game: Game, *given: Any) -> Player:
        made.append(given)
        return named_player(game, "greedy")

    game = dataclasses.replace(GAME, kinds={"seek": PlayerKind(SampleOptions, make, of_network=True)})
    run = trained_run()
    assert isinstance(player_from_text(game, f"seek:{run}:samples:5", CPU), PolicyPlayer)
    ((options, network, *others),) = made
    assert options == SampleOptions(5) and others == ["points_and_win", False]
    assert network.values(GAME.observe(GAME.deal(torch.arange(3).numpy().astype("uint64")))).shape == (3, 40)
    for text, says, hint in (
        ("seek:samples:5", "seek:samples:5", "seek:runs/tressette/default"),
        ("seek", "seek", "seek:runs/tressette/default"),
        (f"seek:{run}:samples:0", "samples", ""),
        ("nobody", "nobody", f"available: random, {', '.join(GAME.policies)}, champion, seek:RUN, or a run folder"),
    ):
        with error_about(SettingsError, "players", says, hint):
            player_from_text(game, text, CPU)


def test_another_file_is_another_player(
    tmp_path: Path, trained_run: TrainedRuns, capsys: pytest.CaptureFixture[str]
) -> None:
    """The journal must not mix two networks of one name: files are identified by content."""

    def sha256(text: str) -> str:
        return resolve(GAME, text).sha256

    run = trained_run()
    before = sha256(str(run))
    assert len(before) == 64 and sha256(f"search:{run}:samples:1") == before
    assert sha256("greedy") == sha256("monte_carlo:samples:2") == ""
    out = [f"players=[{run},random]", "deals=4", f"folder={tmp_path / 'out'}"]
    assert main(out) == 0
    best = run / "checkpoints" / "best.pt"
    checkpoint.save(best, checkpoint.load(best) | {"score": 2.0, "least": 2.0})
    assert sha256(str(run)) != before
    capsys.readouterr()
    assert main(out) == 2
    line = capsys.readouterr().err
    assert key_of(line) == "players" and str(run) in line


@pytest.mark.parametrize("name", ["blackjack", "sette_mezzo", "spike"])
@pytest.mark.parametrize("load", [lambda game, text: player_from_text(game, text, CPU, "opponents"), seated_player])
def test_search_is_proposed_where_it_can_play_alone(name: str, load: Callable[[Game, str], Player]) -> None:
    with error_about(SettingsError, "opponents", "nobody", "or a run folder") as error:
        load(load_game(name), "nobody")
    assert ("champion, search:RUN" in error.value.hint) == ("search" in error.value.hint) == (name == "spike")
