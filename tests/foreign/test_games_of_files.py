"""Games named in files: only busso's games, installed ones, and those named by the user run."""

import json
import os
import pickle
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from busso.base import own_files
from busso.cards import packages
from busso.command.settings import untrusted
from busso.command.settings.checks import SettingsError
from busso.command.settings.game import load_configured_game
from tests.errors import error_about
from tests.foreign.files import champion_of, change_checkpoints, change_config, table

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.usefixtures("no_trusted_files")
TRAP, TYPED = "trap", "./trap.py"  # a file in the working folder
Main = Callable[[Sequence[str]], int]


@pytest.fixture(autouse=True)
def named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forget the files named during a test."""
    monkeypatch.setattr(own_files, "_trusted", {})
    monkeypatch.setattr(packages, "_games", {})


@pytest.fixture
def marker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Write a game file that leaves a mark when it runs, in the working folder, where Python would find it."""
    folder, path = tmp_path / "work", tmp_path / "marker"
    folder.mkdir(parents=True)
    (folder / f"{TRAP}.py").write_text(
        f"import pathlib\npathlib.Path({str(path)!r}).touch()\nfrom dataclasses import replace\n"
        f"from tests.cards.toy import TOY\nGAME = replace(TOY, name={TRAP!r})\n"
    )
    monkeypatch.chdir(folder)
    monkeypatch.syspath_prepend(folder)
    yield path
    sys.modules.pop(TRAP, None)


def of_trap(settings: dict[str, Any]) -> None:
    settings["game"] = {"name": TRAP}


@pytest.fixture
def files(trained_run: Any, marker: Path) -> dict[str, Path]:
    """Write each kind of file with this game."""
    run = trained_run(runs=Path("runs"))
    champion = champion_of(run, Path("given.safetensors"), of_trap)
    change_config(run, of_trap)
    best = change_checkpoints(run, of_trap)
    save, records = Path("table.json"), Path("games.jsonl")
    save.write_text(json.dumps(table({"name": TRAP}, ["human", "random"])))
    played = {"seed": 1, "actions": ["0", "2", "5", "7", "3", "4"]}
    records.write_text(json.dumps({"game": TRAP, **played}) + "\n")
    assert not marker.exists()
    return {"run": run, "best": best, "champion": champion, "save": save, "records": records}


TRAIN = ("rollout=local", "episodes=10", "name=new", "evaluation.opponents=[random]")
# By reader: module with the `main`, arguments, and kind of file.
READERS = {
    "play": ("busso.play.__main__", ["save={}", "ui=plain"], "save"),
    "play against": ("busso.play.__main__", ["opponents={}", "ui=plain", "seed=1"], "best"),
    "tournament": ("busso.evaluate.tournament.__main__", ["players=[{},random]", "deals=2", "processes=1"], "champion"),
    "export, champion": ("busso.evaluate.export.__main__", ["run={}"], "champion"),
    "export": ("busso.evaluate.export.__main__", ["run={}", "format=safetensors", "to=made"], "best"),
    "report": ("busso.evaluate.report.__main__", ["{}"], "run"),
    "review": ("busso.evaluate.review.__main__", ["{}", "by=random"], "records"),
    "train from, champion": ("busso.train.__main__", [*TRAIN, "network.init_from={}"], "champion"),
    "train against": ("busso.train.__main__", [*TRAIN, "opponents.only={}"], "champion"),
    "search": ("busso.evaluate.tournament.__main__", ["players=[search:{},random]", "deals=2", "processes=1"], "best"),
}


@pytest.mark.parametrize("reader", READERS)
def test_nothing_runs_for_a_file(
    reader: str, files: dict[str, Path], marker: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The error line names the file, the game and the way out."""
    module, arguments, kind = READERS[reader]
    main: Main = __import__(module, fromlist=["main"]).main
    assert main([each.format(files[kind]) for each in arguments]) not in (0, None)
    output = capsys.readouterr()
    assert not marker.exists() and TRAP not in sys.modules
    (line,) = [line for line in output.err.splitlines() if TRAP in line]
    assert line.startswith("error: ") and str(files[kind]) in line and f"game={TYPED}" in line
    assert "Traceback" not in output.err


def test_replay_says_it_of_the_record(files: dict[str, Path], marker: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from busso.evaluate.replay import main

    assert main([str(files["records"])]) == 1
    result = json.loads(capsys.readouterr().out)
    assert not marker.exists() and result["line"] == 1 and f"game={TYPED}" in result["error"]


def test_named_on_the_command_line_it_runs(files: dict[str, Path], marker: Path) -> None:
    from busso.evaluate.replay import main

    assert main([str(files["records"]), f"game={TYPED}"]) == 0
    assert marker.exists()


def test_the_library_refuses_a_run(files: dict[str, Path], marker: Path) -> None:
    """Its docstring continues with `load_game(run.game)`."""
    import busso

    with pytest.raises(busso.BussoError) as caught:
        busso.load_run(files["run"])
    assert not marker.exists() and "config.yaml" in str(caught.value)
    assert f'busso.load_game("{TYPED}")' in str(caught.value) and f"game={TYPED}" not in str(caught.value)


def test_a_resumed_run_keeps_its_own_game(trained_run: Any, marker: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from busso.train.__main__ import main
    from tests.train.runs import small

    run = trained_run(runs=Path("runs"))
    change_checkpoints(change_config(run, of_trap), of_trap)
    assert main(small(Path("runs"))) == 2
    assert not marker.exists() and "game.name" in capsys.readouterr().err


def test_a_name_that_is_loaded_or_named_may_stand_in_a_file(marker: Path) -> None:
    with error_about(SettingsError, "game.name", TRAP, hint=f"game={TYPED}"):
        load_configured_game({"name": TRAP})
    assert untrusted.trust_game(TYPED) == TRAP and marker.exists()
    assert load_configured_game({"name": TRAP}) is not None


@pytest.mark.parametrize(
    "name", ["os", "cards", "nowhere", "tests.cards.toy", "", "../trap", TYPED, "trap\n", "busso.spike.rules"]
)
def test_what_is_no_game_stays_none(name: str, marker: Path) -> None:
    with error_about(SettingsError, "game.name"):
        load_configured_game({"name": name})


def test_an_installed_game_may_stand_in_a_file(marker: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Entry points of packages on the path count, those in the working folder do not."""

    def install(folder: Path) -> None:
        about = folder / f"{TRAP}-1.0.dist-info"
        about.mkdir(parents=True)
        (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {TRAP}\nVersion: 1.0\n")
        (about / "entry_points.txt").write_text(f"[busso.games]\n{TRAP} = {TRAP}:GAME\n")

    install(Path.cwd())
    with error_about(SettingsError, "game.name"):
        load_configured_game({"name": TRAP})
    install(tmp_path / "site")
    monkeypatch.syspath_prepend(tmp_path / "site")
    assert load_configured_game({"name": TRAP}) is not None


def test_settings_that_were_sent_name_their_game(tmp_path: Path, marker: Path) -> None:
    """A process of the same run gets settings as a pickle with the source, but neither command line nor file."""
    from busso.command.settings.compose import compose
    from busso.evaluate.tournament.settings import TournamentSettings
    from busso.train.settings.resolve import settings_of
    from tests.train.runs import small

    game = f"game={TYPED}"
    code = "import pickle, sys; s = pickle.load(sys.stdin.buffer); "
    code += "from busso.command.settings.game import load_configured_game as l; print(l(s.game).name)"
    settings = [
        settings_of([*small(tmp_path), game]),
        compose(TournamentSettings, "tournament", [game, "players=[random,lowest]"]),
    ]
    sent = [pickle.dumps(each) for each in settings]
    Path(TYPED).unlink()
    for each in sent:
        environment = os.environ | {"PYTHONPATH": str(ROOT)}
        done = subprocess.run(
            [sys.executable, "-c", code], check=False, capture_output=True, input=each, env=environment
        )
        assert done.stdout == f"{TRAP}\n".encode(), done.stderr


def test_a_foreign_algo_reads_no_file_of_settings(trained_run: Any, tmp_path: Path, marker: Path) -> None:
    """A report composes the defaults of a run's algorithm; Hydra would follow `../` out of conf/."""
    from busso.train.run.read import load_run

    run = trained_run(runs=tmp_path / "runs")
    (tmp_path / "bad.yaml").write_text(f"# @package _global_\ngame: {{name: {TRAP}}}\n")
    up = "/".join([".."] * 12) + str(tmp_path / "bad")
    change_config(run, lambda settings: settings.update(algo=up))
    with error_about(SettingsError, "run", "algo"):
        load_run(run)
    assert not marker.exists()
