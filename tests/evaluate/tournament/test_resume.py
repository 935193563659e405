"""A stopped tournament resumes and ends with the same files; several processes give the same results."""

import errno
import json
import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

from busso.base import lock
from busso.cards import packages
from busso.cards.game import load_game
from busso.command.settings.checks import SettingsError
from busso.command.settings.compose import compose
from busso.evaluate.tournament import run as command
from busso.evaluate.tournament.__main__ import main
from busso.evaluate.tournament.batches import Batch, Executor, Played, ProcessLostError, TournamentWorker, play_batches
from busso.evaluate.tournament.journal import ABOUT, BATCHES, LOCK, Journal
from busso.evaluate.tournament.schedule import Plan, Schedule
from busso.evaluate.tournament.settings import TournamentSettings
from busso.train.players.resolve import TRAINED, ResolvedPlayer, resolve_all
from busso.train.run.checkpoint import CheckpointError
from tests.base.test_lock import AWAY, put
from tests.chips import emulated_chip
from tests.disk import watched
from tests.errors import error_about
from tests.evaluate.tournament.parts import played
from tests.limits import until
from tests.processes import alive

ROOT = Path(__file__).parents[3]
PLAYERS = "players=[hit_below_14,hit_below_17,random]"
SMALL = ["game=blackjack", PLAYERS, "batch_deals=16", "records=20"]
FILES = ("results.csv", "ratings.csv", "games.jsonl")


def files(folder: Path) -> list[bytes]:
    return [(folder / name).read_bytes() for name in FILES]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Play a tournament without a stop: 10 batches of each of three pairs."""
    folder = tmp_path_factory.mktemp("whole")
    assert main([*SMALL, "deals=150", f"folder={folder}"]) == 0
    return folder


@pytest.mark.parametrize(("stop", "torn"), [(1, 40), (13, 0)])
def test_stopped_in_the_middle_of_a_pair(
    whole: Path,
    tmp_path: Path,
    stop: int,
    torn: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Ctrl-C after some batches, with the last line perhaps incomplete; kept batches are not played again."""
    add, added, most = Journal.add, list[Played](), stop

    def adding(self: Journal, batch: Played) -> None:
        if len(added) == most:
            raise KeyboardInterrupt
        added.append(batch)
        add(self, batch)

    monkeypatch.setattr(Journal, "add", adding)
    arguments = [*SMALL, "deals=150", f"folder={tmp_path}"]
    assert main(arguments) == 130
    assert f"the same command with folder={tmp_path} resumes" in capsys.readouterr().err.replace("\n", "")
    journal, most = tmp_path / BATCHES, 100
    if torn:
        journal.write_bytes(journal.read_bytes()[:-torn])
    assert main(arguments) == 0 and len(added) == 30 + bool(torn)
    assert files(tmp_path) == files(whole)
    assert main(arguments) == 0 and files(tmp_path) == files(whole)  # nothing is left to play


def test_more_deals_and_more_players_go_on(whole: Path, tmp_path: Path) -> None:
    """Earlier deals count: the result is that of a tournament with these settings from the start."""
    assert (
        main(["game=blackjack", "players=[hit_below_14,random]", "deals=70", "batch_deals=16", f"folder={tmp_path}"])
        == 0
    )
    size = (tmp_path / BATCHES).stat().st_size
    assert main([*SMALL[:3], "deals=150", f"folder={tmp_path}"]) == 0
    assert (tmp_path / "results.csv").read_bytes() == (whole / "results.csv").read_bytes()
    lines = (tmp_path / BATCHES).read_bytes()
    kept = [json.loads(line.partition(b" ")[2])["unit"] for line in lines[:size].splitlines()]
    added = [json.loads(line.partition(b" ")[2])["unit"] for line in lines[size:].splitlines()]
    assert len(added) == 30 - 4 and not [unit for unit in kept if unit in added]  # the fifth batch was shorter


def test_several_processes_play_the_same(tmp_path: Path) -> None:
    """Also with `until`, where one process may play batches that are not needed."""
    for processes in (1, 2):
        folder = tmp_path / str(processes)
        assert main([*SMALL, "until=6%", f"folder={folder}", f"processes={processes}"]) == 0
    assert files(tmp_path / "1") == files(tmp_path / "2")
    times = [json.loads((tmp_path / str(n) / "results.json").read_text())["times"] for n in (1, 2)]
    for one, two in zip(times[0].values(), times[1].values(), strict=True):
        assert (one["decisions"], one["forced"]) == (two["decisions"], two["forced"])


@pytest.mark.slow
def test_killed_with_its_processes(tmp_path: Path) -> None:
    """SIGKILL in mid-pair: worker processes end by themselves, and the same command resumes."""
    arguments = ["game=blackjack", PLAYERS, "batch_deals=16", "deals=60000"]
    command = [sys.executable, "-m", "busso.evaluate.tournament", *arguments, "processes=2", f"folder={tmp_path}"]
    with subprocess.Popen(command, cwd=ROOT, stderr=subprocess.DEVNULL) as process:
        batches = tmp_path / BATCHES
        until("some batches", lambda: batches.exists() and batches.read_bytes().count(b"\n") > 5, 60)
        below = psutil.Process(process.pid).children(recursive=True)
        os.kill(process.pid, signal.SIGKILL)
    assert len(below) >= 2
    until("their end", lambda: not alive(each.pid for each in below), 20)
    kept = batches.read_bytes().count(b"\n")
    assert main([*arguments[:3], "deals=320", f"folder={tmp_path}"]) == 0
    assert 5 < kept < 3 * 60000 / 16
    assert main([*arguments[:3], "deals=320", f"folder={tmp_path / 'other'}"]) == 0
    assert (tmp_path / "results.csv").read_bytes() == (tmp_path / "other" / "results.csv").read_bytes()


OTHER = {
    "seed=8": "seed: the games in {folder} were played with 7, not 8; choose another folder",
    "batch_deals=32": "batch_deals: the games in {folder} were played with 16, not 32; choose another folder",
    "game.decks=2": 'game: the games in {folder} were played with {{"name": "blackjack"',
}


@pytest.mark.parametrize("override", OTHER)
def test_a_folder_of_other_games_is_refused(whole: Path, override: str, capsys: pytest.CaptureFixture[str]) -> None:
    before = files(whole)
    assert main([*SMALL, "deals=150", f"folder={whole}", override]) == 2
    error = capsys.readouterr().err
    assert OTHER[override].format(folder=whole) in error and error.count("\n") == 1
    assert files(whole) == before


def test_a_player_whose_file_has_changed_is_refused(tmp_path: Path) -> None:
    about = {"seed": 7, "players": {"runs/x": "one", "greedy": ""}}
    Journal(tmp_path, about).close()
    Journal(tmp_path, about | {"players": {"runs/y": "two"}}).close()
    with error_about(SettingsError, "players", "runs/x", hint="another folder"):
        Journal(tmp_path, about | {"players": {"runs/x": "another"}})
    assert json.loads((tmp_path / ABOUT).read_text())["players"] == {"runs/x": "one", "greedy": "", "runs/y": "two"}
    Journal(tmp_path, about).close()  # the rejected one has released the folder


def test_other_code_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Games before and after a rule player changed would be one result; more players of the same code may join."""
    arguments = ["game=blackjack", "deals=8", f"folder={tmp_path}"]
    assert main([*arguments, "players=[hit_below_14,random]"]) == 0
    assert main([*arguments, PLAYERS]) == 0
    before = (tmp_path / "results.csv").read_bytes()
    capsys.readouterr()
    monkeypatch.setattr(packages, "source_digest", lambda package: f"changed {package}")
    assert main([*arguments[:1], "deals=16", arguments[2], PLAYERS]) == 2
    says = f"error: code: busso.cards has changed since the games in {tmp_path}; choose another folder\n"
    assert capsys.readouterr().err == says and (tmp_path / "results.csv").read_bytes() == before


def test_a_digest_of_sources_follows_every_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "some_game"
    (package / "inner").mkdir(parents=True)
    for path in ("__init__.py", "rules.py", "inner/__init__.py"):
        (package / path).write_text("")
    monkeypatch.syspath_prepend(tmp_path)
    digests = [packages.source_digest("some_game")]
    for path, text in (("rules.py", "A = 1"), ("inner/policies.py", "B = 2"), ("table.txt", "no code")):
        (package / path).write_text(text)
        digests.append(packages.source_digest("some_game"))
    assert len(set(digests[:3])) == 3 and digests[3] == digests[2]


def test_another_number_format_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Networks play in bfloat16 where the CPU has it, which changes 2% of deals. Rule players may join."""
    arguments = ["deals=4", f"folder={tmp_path}"]
    with emulated_chip("bfloat16"):
        assert main([*arguments, "players=[champion,random]"]) == 0
    with emulated_chip("float32_pytorch"):
        assert main([*arguments, "players=[greedy,random]"]) == 0
        assert main([*arguments, "players=[champion,random]"]) == 2
    says = f"error: number_format: networks played in bfloat16 in {tmp_path}, and here play in float32; choose another "
    assert says + "folder, or resume on such a CPU\n" in capsys.readouterr().err


def test_a_process_with_other_code_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """As after `git pull` between the start of a tournament and that of a worker process."""
    settings = small_settings()
    worker = TournamentWorker(settings, resolve_all(load_game("blackjack"), settings.players), load_game("blackjack"))
    plays_with = Executor(worker, 2)._plays_with
    monkeypatch.setattr(packages, "source_digest", lambda package: f"changed {package}")
    with error_about(SettingsError, "code", "busso.cards", hint="again"):
        play_batches(plays_with, Batch(("hit_below_14", "random"), 0, 4))


def test_who_lost_the_folder_writes_no_batch(tmp_path: Path) -> None:
    journal, unit = Journal(tmp_path, {"players": {}}), Batch(("a", "b"), 0, 3)
    journal.add(played(unit, np.array([0.0, 0.5, 1.0])))
    before = (tmp_path / BATCHES).read_bytes()
    put(tmp_path / LOCK, **AWAY)
    with error_about(lock.LostError, tmp_path, "node9"):
        journal.add(played(unit, np.array([0.0, 0.5, 1.0])))
    journal.close()
    assert (tmp_path / BATCHES).read_bytes() == before


def test_a_full_disk_names_the_file_of_batches(tmp_path: Path) -> None:
    def full(path: Path) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with watched(tmp_path) as disk:
        journal = Journal(tmp_path, {"players": {}})
        allowed, disk.refuse_write = disk.refuse_write, full
        with pytest.raises(OSError) as caught:
            journal.add(played(Batch(("a", "b"), 0, 3), np.array([0.0, 0.5, 1.0])))
        disk.refuse_write = allowed
        journal.close()
    assert caught.value.filename == str(tmp_path / BATCHES)


def test_batches_that_are_not_whole_are_left_out(tmp_path: Path) -> None:
    journal, wins = Journal(tmp_path, {"players": {}}), np.array([0.0, 0.5, 1.0])
    units = [Batch(("a", "b: c"), first, 3) for first in (0, 3, 6, 9)]
    for unit in units:
        journal.add(played(unit, wins))
    journal.close()
    path = tmp_path / BATCHES
    lines = path.read_bytes().splitlines()
    lines[1] = lines[1].replace(b'"seconds":1.0', b'"seconds":2.0')
    lines[2] = b"\xff nothing"
    path.write_bytes(b"\n".join(lines))
    journal = Journal(tmp_path, {"players": {}})
    assert [each.batch for each in journal.played] == [units[0], units[3]]
    assert np.array_equal(journal.played[1].duel.own, 11 * wins) and journal.played[1].duel.wins.flags.writeable
    journal.add(played(units[1], wins))
    journal.close()
    journal = Journal(tmp_path, {"players": {}})
    assert [each.batch for each in journal.played] == [units[0], units[3], units[1]]
    journal.close()


def small_settings(**changes: Any) -> TournamentSettings:
    plain = compose(TournamentSettings, "tournament", ["game=blackjack", "players=[hit_below_14,random]"])
    return replace(plain, **changes)


def resolved(settings: TournamentSettings) -> dict[str, ResolvedPlayer]:
    gone = ResolvedPlayer("gone.pt", TRAINED, None, Path("gone.pt"))
    return {gone.name: gone, **resolve_all(load_game("blackjack"), settings.players)}


@pytest.fixture
def processes() -> Iterator[Executor]:
    settings = small_settings()
    with closing(Executor(TournamentWorker(settings, resolved(settings), load_game("blackjack")), 2)) as executor:
        assert executor.workers == 2
        yield executor


def test_a_process_that_is_killed_is_one_line(
    processes: Executor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    schedule, submit, killed = Schedule([("hit_below_14", "random")], Plan(400_000, 100_000)), processes.submit, []

    def killing(batch: Batch) -> Future[Played]:
        future = submit(batch)
        for pid in () if killed else [*processes.pool._processes]:
            killed.append(pid)
            os.kill(pid, signal.SIGKILL)
        return future

    monkeypatch.setattr(processes, "submit", killing)
    with (
        closing(Journal(tmp_path, {"players": {}})) as journal,
        error_about(ProcessLostError, "processes", hint="folder="),
    ):
        command.play(schedule, processes, journal, lambda: None)
    assert killed


def test_a_process_that_does_not_start_is_one_line(processes: Executor, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_memory(*_: object) -> None:
        raise OSError(12, "Cannot allocate memory")

    monkeypatch.setattr(processes.pool, "submit", no_memory)
    with error_about(ProcessLostError, "processes", "Cannot allocate memory", hint="folder="):
        processes.submit(Batch(("hit_below_14", "random"), 0, 4))


@pytest.mark.parametrize(
    ("player", "error", "says"),
    [("gone.pt", CheckpointError, "gone"), ("hit_below_14", RuntimeError, "Traceback")],
)
def test_what_goes_wrong_in_a_process_is_raised_here(
    processes: Executor, player: str, error: type[Exception], says: str
) -> None:
    future = processes.submit(Batch((player, "random"), 0, 10 if player == "gone.pt" else -1))
    with pytest.raises(error, match=says):
        future.result()


def test_a_file_that_changes_while_it_plays_is_one_line(tmp_path: Path) -> None:
    """Like the best network of a run in training, before another process loads it."""
    table = tmp_path / "policy.json"
    table.write_text(json.dumps({}))
    settings = small_settings(players=[str(table), "random"])
    players, game = resolved(settings), load_game("blackjack")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("busso.evaluate.tournament.batches.load_resolved", lambda *_: None)
        TournamentWorker(settings, players, game).load(str(table))
        table.write_text(json.dumps({"another": 1}))
        with error_about(SettingsError, "players", "policy.json", hint="checkpoint"):
            TournamentWorker(settings, pickle.loads(pickle.dumps(players)), game).load(str(table))
