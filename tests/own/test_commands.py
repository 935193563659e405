"""A game in one file with every command, from any folder, in other processes, and after edits."""

import io
import json
import os
import pickle
import shlex
import shutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import yaml

import busso
from busso.base import own_files
from busso.cards.compiled.batch import reward_loop
from busso.cards.hand import Hand
from busso.cards.presentation import presentation_of
from busso.command.settings.compose import compose
from busso.command.settings.game import load_configured_game
from busso.command.settings.quoting import given
from busso.evaluate.review.grader import grader_of
from busso.evaluate.tournament.settings import TournamentSettings
from busso.play.spectate import open_watch
from busso.play.table.settings import PlaySettings
from busso.train.__main__ import main as train
from busso.train.run import folder as sources
from busso.train.sweep import sweep_name
from tests.own.examples import TRICKS, WAR, forget_trusted_files
from tests.train.runs import SMALL

ROOT = Path(__file__).parents[2]
OWN = ROOT / "examples" / "own"
SHORT = [each for each in SMALL if not each.startswith("evaluation.opponents")]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Create a folder with war.py, a run of it, and records of a tournament."""
    folder = tmp_path_factory.mktemp("war")
    shutil.copy(WAR, folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        assert train(["game=./war.py", *SHORT, "name=r"]) == 0
        players = "players=[runs/war/r,sluff,random]"
        assert called("evaluate.tournament", "game=./war.py", players, "deals=4", "records=4", "folder=cup") == 0
    return folder


@pytest.fixture
def here(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Copy that folder and make it the working folder."""
    copied = tmp_path / "copy"
    shutil.copytree(folder, copied)
    monkeypatch.chdir(copied)
    return copied


def called(command: str, *arguments: str) -> int:
    found: int = import_module(f"busso.{command}.__main__").main(list(arguments)) or 0
    return found


@pytest.mark.parametrize(
    ("command", "arguments", "made"),
    [
        ("evaluate.report", ["runs/war/r", "games=64", "measure=false"], "runs/war/r/report/report.html"),
        ("evaluate.export", ["run=runs/war/r", "to=out"], "out/model.onnx"),
        ("evaluate.export", ["run=runs/war/r", "format=safetensors", "to=made"], "made/network.safetensors"),
        ("evaluate.review", ["cup/games.jsonl", "by=runs/war/r", "format=html", "to=page.html"], "page.html"),
    ],
    ids=lambda each: each if isinstance(each, str) and "." in each and "/" not in each else "",
)
def test_a_command_reads_what_is_of_the_game_that_is_typed(
    command: str, arguments: list[str], made: str, here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: Any
) -> None:
    """From a subfolder too. Without the file, one line says what to type."""
    forget_trusted_files(monkeypatch)
    assert called(command, *arguments) != 0
    assert "game=./war.py" in capsys.readouterr().err
    Path(made).unlink(missing_ok=True)  # a review without records still writes a page
    assert called(command, *arguments, "game=./war.py") == 0, capsys.readouterr().err
    assert Path(made).exists()


def test_runs_are_compared_from_another_folder(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from busso.evaluate.compare import main as compare

    shutil.copytree("runs/war/r", "runs/war/s")
    (here / "below").mkdir()
    monkeypatch.chdir(here / "below")
    assert compare(["../runs/war/r", "../runs/war/s", "game=../war.py", "folder=found"]) == 0
    assert Path("found/report.html").exists()


def test_records_replay_and_say_their_returns(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from busso.evaluate.replay import main as replay

    assert replay(["cup/games.jsonl", "game=./war.py"]) == 0
    outcomes = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert len(outcomes) == 24 and all(sum(outcome["returns"]) == 10 for outcome in outcomes)
    Path("war.py").write_text(Path("war.py").read_text().replace("out[:] = state.taken", "out[:] = state.taken[::-1]"))
    assert replay(["cup/games.jsonl", "game=./war.py"]) == 1
    assert "the record has" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("opponent", "network"),
    [
        ("sluff", []),
        (f"{OWN}/mine.py:Lowest", []),
        ("runs/war/n", [f"network={OWN}/net.py"]),
    ],
    ids=["a rule", "a player in a file", "a network in a file"],
)
def test_it_is_played_saved_and_resumed_by_the_line_that_says_so(
    opponent: str, network: list[str], here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    own_files.trust(f"{OWN}/net.py")  # which nobody at the table needs, but for the last case
    if network:
        short = [each for each in SHORT if not each.startswith("network.hidden")]
        assert train(["game=./war.py", *short, *network, "name=n"]) == 0
        capsys.readouterr()
    monkeypatch.setattr("sys.stdin", io.StringIO("show\nquit\n"))
    assert called("play", "game=./war.py", "ui=plain", "seed=3", f"opponents={opponent}", *network) == 0
    said = capsys.readouterr().out
    assert "hand: 3D 1C 2C 3C 1S 2S 3S 4S 5S 5B" in said and "own tricks: 0" in said
    command = said.splitlines()[-1].partition("busso play ")[2]
    assert command.startswith("game=./war.py ") and ("network=" in command) == bool(network)
    forget_trusted_files(monkeypatch)
    monkeypatch.setattr("sys.stdin", io.StringIO("quit\n"))
    assert called("play", *shlex.split(command), "ui=plain") == 0
    assert f"Seat 1: {opponent}." in capsys.readouterr().out


def test_its_records_are_watched(here: Path) -> None:
    settings = compose(PlaySettings, "play", ["game=./war.py", "watch=cup/games.jsonl"])
    assert open_watch(settings, given(["game=./war.py", "watch=cup/games.jsonl"])).game.name == "war"


@pytest.mark.parametrize(("lang", "says"), [("en", "Won by seat: "), ("it", "Vinte per posto: ")])
def test_a_game_without_teams_is_won_by_a_seat(
    lang: str, says: str, here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    cards = "".join(f"{rank}{suit}\n" for rank in (10, *range(1, 10)) for suit in "DCSB")
    monkeypatch.setattr("sys.stdin", io.StringIO(10 * cards))  # illegal ones are rejected
    assert called("play", "game=./war.py", "ui=plain", "seed=3", "opponents=sluff", f"lang={lang}") == 0
    assert says in capsys.readouterr().out


def test_a_run_gives_hints_in_the_unit_of_the_game(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """They are the network's values, as in a review by the run."""
    from busso.play.table.hints import Coach

    monkeypatch.setattr("sys.stdin", io.StringIO("hint\nquit\n"))
    assert called("play", "game=./war.py", "ui=plain", "seed=3", "opponents=sluff", "hint=runs/war/r") == 0
    (line,) = [line for line in capsys.readouterr().out.splitlines() if "Values in " in line]
    assert "Values in tricks, by runs/war/r: " in line and line.count(", ") == 10
    game = busso.load_game("./war.py")
    hand = Hand(game, np.zeros(1, np.uint64), game.deal(np.zeros(1, np.uint64)))
    coach, graded = Coach(game, {}, "runs/war/r"), grader_of(game, "runs/war/r", torch.device("cpu"), None)
    hint = coach.hint(hand)
    hand.play(hint[1].action)
    judged = graded.judge(hand, 0)
    assert judged is not None and [*judged.worths] == hint and judged.cost == hint[0].value - hint[1].value > 0


def test_environments_and_the_library_take_the_file(here: Path) -> None:
    from busso.envs.aec import SeatsEnv
    from busso.envs.vector import SeatsVectorEnv

    env = SeatsEnv("./war.py", 0, None, "ansi")
    env.reset(seed=3)
    text = str(env.render())
    assert "own tricks: 0" in text and "\nplayer_0 may play: 0 1D, 1 2D, 3 4D, " in text
    assert env.metadata["name"] == "war_v0"
    vector = SeatsVectorEnv("./war.py", 4)
    assert vector.reset(seed=1)[0]["observation"].shape == (4, 100)
    game = busso.load_game("./war.py")
    assert busso.duel(game, "sluff", "random", deals=64).win_rate.mean > 0
    assert busso.load_run("runs/war/r").game == "war"
    Path("war.py").write_text(Path("war.py").read_text().replace('unit="tricks"', 'unit="rounds"'))
    assert (game.unit, busso.load_game("./war.py").unit) == ("tricks", "rounds")  # reloaded


def test_a_sweep_names_its_runs_by_the_file(here: Path) -> None:
    shutil.copy("war.py", "peace.py")
    short = [each for each in SHORT if not each.startswith("episodes")]
    assert train(["-m", "game=./war.py,./peace.py", *short, "episodes=64"]) == 0
    assert Path("runs/war/game=war/results.json").exists() and Path("runs/peace/game=peace/results.json").exists()
    assert sweep_name("default", "game=../own/war.py,seed=2") == "game=war,seed=2"


def test_other_processes_play_by_the_text_that_was_typed(here: Path) -> None:
    """In a new tournament process, which needs neither file nor folder."""
    settings = compose(TournamentSettings, "tournament", ["game=./war.py", "players=[sluff,random]", "deals=2"])
    sent = pickle.dumps(settings)
    Path("war.py").write_text("raise SystemExit('read from the disk')\n")
    code = "import pickle, sys; s = pickle.load(sys.stdin.buffer)\n"
    code += "from busso.command.settings.game import load_configured_game\n"
    code += "print(load_configured_game(s.game).unit)"
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", code], input=sent, capture_output=True, cwd="/", env=environment, check=False
    )
    assert done.stdout == b"tricks\n", done.stderr


def test_a_run_keeps_the_text_and_says_when_it_differs(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kept = Path("runs/war/r/code/war.py")
    assert kept.read_text() == Path("war.py").read_text()
    play = ("evaluate.tournament", "game=./war.py", "players=[runs/war/r,random]", "deals=2", "processes=1")
    sources.warn_of_changes.cache_clear()
    assert called(*play) == 0 and "has changed since runs" not in capsys.readouterr().err
    Path("war.py").write_text(Path("war.py").read_text() + "# edited\n")
    sources.warn_of_changes.cache_clear()
    assert called(*play) == 0
    (line,) = [line for line in capsys.readouterr().err.splitlines() if "has changed since runs" in line]
    assert line.startswith("warning: ./war.py") and "runs/war/r/code/war.py" in line
    assert train(["game=./war.py", *SHORT, "name=r", "episodes=288"]) == 0
    assert "./war.py has changed since the last start of this run" in capsys.readouterr().err
    assert kept.read_text().endswith("# edited\n")
    assert kept.with_name("war.1.py").read_text() == Path("war.py").read_text().removesuffix("# edited\n")


def test_games_of_an_edited_file_do_not_join_others(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    play = (
        "evaluate.tournament",
        "game=./war.py",
        "players=[sluff,random]",
        "processes=1",
        "folder=t",
        "batch_deals=2",
    )
    assert called(*play, "deals=2") == 0
    before = Path("t/batches.jsonl").read_bytes()
    Path("war.py").write_text(Path("war.py").read_text().replace("out[:] = state.taken", "out[:] = 2 * state.taken"))
    Path("war.py").write_text(Path("war.py").read_text().replace("total=TRICKS", "total=2 * TRICKS"))
    for deals in (2, 4):
        assert called(*play, f"deals={deals}") == 2
        said = "code: war.py has changed since the games in t; choose another folder"
        assert said in capsys.readouterr().err
    assert Path("t/batches.jsonl").read_bytes() == before


def test_a_table_of_an_edited_file_is_not_resumed(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("1\nquit\n"))
    assert called("play", "game=./war.py", "ui=plain", "seed=3", "opponents=random", "save=table.json") == 0
    saved = Path("table.json").read_bytes()
    Path("war.py").write_text(Path("war.py").read_text() + "# edited\n")
    monkeypatch.setattr("sys.stdin", io.StringIO("quit\n"))
    assert called("play", "game=./war.py", "ui=plain", "save=table.json") == 2
    assert "table.json: ./war.py has changed since, and its rules may differ" in capsys.readouterr().err
    assert Path("table.json").read_bytes() == saved


def test_what_lies_in_the_run_folder_never_runs(here: Path) -> None:
    Path("runs/war/r/code/war.py").write_text("raise SystemExit('it ran')\n")
    assert called("evaluate.tournament", "game=./war.py", "players=[runs/war/r,random]", "deals=2", "processes=1") == 0


def test_a_variant_meets_the_champion_and_keeps_its_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    typed = f"game={TRICKS}"
    assert called("evaluate.tournament", typed, "players=[champion,random]", "deals=4", "processes=1") == 0
    monkeypatch.setattr("sys.stdin", io.StringIO("show\nquit\n"))
    assert called("play", typed, "ui=plain", "seed=3", "opponents=greedy") == 0
    assert "Your hand: " in capsys.readouterr().out  # Tressette's text


def test_what_is_typed_without_a_path_has_a_hint(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert train(["game=war", "--cfg", "job"]) == 2
    assert "use game=./war.py" in capsys.readouterr().err
    assert train(["game=./nowhere.py", "--cfg", "job"]) == 2
    assert capsys.readouterr().err == "error: game: ./nowhere.py: file not found\n"


def test_options_and_recipe_of_the_file_are_composed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from tests.tiny_game import TYPED

    assert train([TYPED, "game.bet=3", "--cfg", "job"]) == 0
    composed = capsys.readouterr().out
    assert "bet: 3" in composed and "- equilibrium" in composed
    assert train([TYPED, "game.bet=11", *SMALL, f"runs={tmp_path}"]) == 2
    assert capsys.readouterr().err.startswith("error: game.bet: expected an integer from 1 to 10")


def test_check_says_which_check_fails(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from busso.evaluate.check import main as check

    assert check(["./war.py"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 12 and [line for line in lines if not line.endswith(" ok")] == [
        "hidden cards do not matter  not checked; write reshuffle_hidden(states, seat, random)"
    ]
    text = Path("war.py").read_text()
    hidden = "\n\ndef reshuffle_hidden(states, seat, random):\n    states['played'][0, 1 - seat] ^= np.uint64(1)\n"
    Path("war.py").write_text(text + hidden)
    assert check(["./war.py"]) == 1
    (line,) = [line for line in capsys.readouterr().out.splitlines() if not line.endswith(" ok")]
    assert line.startswith("hidden cards do not matter") and "sees hidden cards" in line


def test_check_takes_a_variant(capsys: pytest.CaptureFixture[str]) -> None:
    """The records of its game have no returns."""
    from busso.evaluate.check import main as check

    assert check([TRICKS]) == 0
    assert "records replay              ok" in capsys.readouterr().out


def test_a_folder_with_modules_is_a_game(here: Path) -> None:
    text = Path("war.py").read_text()
    Path("wars").mkdir()
    Path("wars/rules.py").write_text(text)
    Path("wars/__init__.py").write_text("from .rules import GAME\n")
    game = busso.load_game("./wars")
    assert game.name == "wars" and game.deal(np.arange(2, dtype=np.uint64)).size == 2
    assert train(["game=./wars", *SHORT, "name=p"]) == 0
    assert Path("runs/wars/p/code/wars/rules.py").read_text() == text


def test_a_game_with_large_results_trains_with_divided_rewards(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """By the most that trial games paid, in one line; a resumed run keeps the divisor when the file pays more."""
    monkeypatch.chdir(tmp_path)
    text = Path(WAR).read_text().replace("total=TRICKS, ", "")

    def trained(factor: int, episodes: int) -> dict[str, Any]:
        Path("war.py").write_text(text.replace("out[:] = state.taken", f"out[:] = {factor} * state.taken"))
        forget_trusted_files(monkeypatch)
        short = [each for each in SHORT if not each.startswith("episodes")]
        assert train(["game=./war.py", *short, "name=r", f"episodes={episodes}"]) == 0
        settings: dict[str, Any] = yaml.safe_load(Path("runs/war/r/config.yaml").read_text())
        return settings["game"]

    kept = trained(3, 128)
    most = kept["reward_scale"]
    line = f"the reward result is divided by game.reward_scale={most:g}, the most that trial games paid\n"
    assert most > 4 and capsys.readouterr().err.count(line) == 1
    divided, plain = load_configured_game(kept), load_configured_game({"name": "war"})
    paid = []
    for game in (divided, plain):
        states, totals = game.deal(np.arange(1, 65, dtype=np.uint64)), np.zeros((64, 2), np.float32)
        while not game.over(states).all():
            actions = np.array([mask & -mask for mask in game.legal(states).tolist()]).astype(np.float64)
            chosen = np.log2(actions).astype(np.uint8)
            reward_loop(game.rules.apply, game.rewards["result"])(states, np.arange(64), chosen, totals)
        paid.append(totals)
        worth = presentation_of(game).units(game)["result"][1]
        assert np.allclose(totals[:, 0] * worth, (game.returns(states) @ [1, -1]))
    assert np.allclose(paid[0] * most, paid[1]) and np.abs(paid[1]).max() > 0
    assert trained(9, 256)["reward_scale"] == most
    assert capsys.readouterr().err.count(line) == 1
