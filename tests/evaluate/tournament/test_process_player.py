"""Players that are programs: the lines that they read, the cost of their faults, and that no process stays behind."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from busso.cards.compiled.splitmix import stream
from busso.cards.game import Game, load_game
from busso.cards.play import Actions, Decisions, play
from busso.cards.player_specs import PlayerSpec
from busso.cards.players import RandomPlayer, named_player
from busso.command.settings.checks import SettingsError
from busso.command.settings.quoting import in_quotes, spelled
from busso.evaluate.players import load_resolved
from busso.evaluate.process_player.player import ProcessPlayer, ProcessPlayerError
from busso.evaluate.process_player.program import Program
from busso.evaluate.tournament.__main__ import main
from busso.evaluate.tournament.batches import Batch, Played, TournamentWorker
from busso.evaluate.tournament.forfeits import with_lost
from busso.evaluate.tournament.settings import TournamentSettings
from busso.train.dqn.players.resolve import resolve, resolve_all
from tests.blackjack.hidden import reshuffle_hidden as reshuffle_blackjack
from tests.errors import error_about
from tests.limits import seconds
from tests.processes import alive
from tests.sette_mezzo.hidden import reshuffle_hidden as reshuffle_sette_mezzo
from tests.spike.hidden import reshuffle_hidden as reshuffle_spike
from tests.tressette.hidden import reshuffle_hidden as reshuffle_tressette

ROOT, BOT = Path(__file__).parents[3], Path(__file__).with_name("bot.py")
TRESSETTE = load_game("tressette")


def bot(mode: str, *arguments: object, limit: float = 20) -> str:
    return f"process({sys.executable} {BOT} {' '.join([mode, *map(str, arguments)])}):seconds={limit}"


def player(game: Game, text: str) -> ProcessPlayer:
    found = load_resolved(game, resolve(game, text))
    assert isinstance(found, ProcessPlayer)
    return found


def played(text: str, deals: int = 8, **settings: object) -> Played:
    """A batch of this player against chance."""
    about = TournamentSettings({"name": "tressette"}, [text, "random"], **settings)  # type: ignore[arg-type]
    players = resolve_all(TRESSETTE, about.players)
    return TournamentWorker(about, players).play(Batch((next(iter(players)), "random"), 0, deals))


def test_what_is_told_suffices_to_be_greedy() -> None:
    """A program that knows the lines alone plays as the rule player does, on 64 deals in both seats."""
    one, other, compared = player(TRESSETTE, bot("greedy")), named_player(TRESSETTE, "greedy"), 0
    seating = np.repeat([[0, 1, 0, 1], [1, 0, 1, 0]], 64, axis=0).astype(np.uint8)

    def watch(decisions: Decisions, actions: Actions, totals: np.ndarray) -> None:
        nonlocal compared
        mine = np.take_along_axis(seating[decisions.games], decisions.seats[:, None].astype(np.int64), 1)[:, 0] == 0
        assert actions[mine].tolist() == other.act(decisions.of(mine)).tolist()
        compared += int(mine.sum())

    seeds = np.tile(stream(5, "process", 0, 64), 2)
    other.begin(seeds)
    play(TRESSETTE, seeds, [one, RandomPlayer()], seating, watch=watch)
    assert compared == 128 * 20


@pytest.mark.parametrize(
    ("name", "options", "reshuffle"),
    [
        ("tressette", {"signals": True, "accusi": True}, reshuffle_tressette),
        ("spike", {"seats": 3}, reshuffle_spike),
        ("sette_mezzo", {}, reshuffle_sette_mezzo),
        ("blackjack", {"decks": 1}, reshuffle_blackjack),
    ],
)
def test_nothing_hidden_is_told(
    name: str, options: dict[str, object], reshuffle: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With other cards where the seat cannot see them, the same lines are written."""
    game, told, random = load_game(name, options), list[str](), np.random.default_rng(3)
    asked, send = player(game, bot("good")), Program.send
    monkeypatch.setattr(Program, "send", lambda self, line: (told.append(line), send(self, line))[1])
    changed = 0

    def watch(decisions: Decisions, actions: Actions, totals: np.ndarray) -> None:
        nonlocal changed
        states = decisions.states[decisions.games]
        others = states.copy()
        for k, seat in enumerate(decisions.seats):
            reshuffle(others[k : k + 1], int(seat), random)
        changed += int((states != others).sum())
        lines = []
        for each in (states, others):
            asked.begin(np.zeros(states.size, np.uint64))
            told.clear()
            asked.act(Decisions(game, each, np.arange(states.size)))
            lines.append([{**json.loads(line), "id": 0, "hand": 0} for line in told])
        assert lines[0] == lines[1]

    seeds = stream(1, "hidden", 0, 6)
    play(game, seeds, [RandomPlayer()], np.zeros((6, game.seats), np.uint8), watch=watch)
    assert changed


FAULTS = {"illegal": "illegal", "garbage": "illegal", "stranger": "illegal", "endless": "illegal", "silent": "silent"}


@pytest.mark.parametrize(("mode", "reason"), [*FAULTS.items(), ("dead", "ended")])
def test_a_fault_loses_one_game(mode: str, reason: str, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The program is started again, and plays all other hands as one that has no fault."""
    good, bad = played(bot("good")), played(bot(mode, tmp_path / "marker", limit=1 if mode == "silent" else 20))
    assert (good.spent[0].illegal, good.spent[0].silent, good.spent[0].ended) == (0, 0, 0)
    assert {key: getattr(bad.spent[0], key) for key in ("illegal", "silent", "ended")} == {
        key: int(key == reason) for key in ("illegal", "silent", "ended")
    }
    assert bad.spent[0].games == 16
    (line,) = caplog.messages
    assert "loses a game" in line and f"I am {mode}" in line and "\n" not in line
    (deal,) = np.flatnonzero(good.duel.own != bad.duel.own)
    # One of two plays has 0 points to 11; the other is as it was.
    own, before = bad.duel.own[deal], good.duel.own[deal]
    assert own <= 5.5 and bad.duel.wins[deal] <= 0.5 and bad.duel.other[deal] == 11 - own
    assert 0 < before - own <= 5.5


def test_a_hand_lost_loses_the_match(tmp_path: Path) -> None:
    duel = played(bot("illegal", tmp_path / "marker"), 2, match=11).duel
    good = played(bot("good"), 2, match=11).duel
    (deal,) = np.flatnonzero((duel.own != good.own) | (duel.other != good.other))
    assert duel.wins[deal] <= 0.5 and duel.other[deal] >= 5.5


def test_results_of_lost_games() -> None:
    """The side has the worst result that there can be, and the others share the rest of what the game conserves."""
    spike = load_game("spike", {"seats": 3, "credits": 60})
    results, occupied = np.array([[10, -20, 10]] * 3, np.float32), np.ones((3, 3), np.bool_)
    sides = np.array([[0, 1, 1], [0, 1, 1], [1, 0, 1]], np.uint8)
    lost = np.array([[True, False, False], [False, True, True]])
    found, _ = with_lost(spike, (results, occupied), sides, lost)
    assert found.tolist() == [[-60, 30, 30], [120, -60, -60], [-60, 120, -60]]
    both, _ = with_lost(spike, (results, occupied), sides, np.ones((2, 3), np.bool_))
    assert (both == -60).all()
    alone = (np.ones((1, 1), np.float32), np.ones((1, 1), np.bool_))
    assert with_lost(load_game("blackjack"), alone, sides[:1, :1], lost[:, :1])[0].tolist() == [[-1]]
    assert with_lost(spike, (results, occupied), sides, lost, target=21)[0].tolist()[0] == [0, 21, 21]


def test_many_faults_in_a_row_end_the_tournament() -> None:
    with error_about(ProcessPlayerError, PlayerSpec.parse(bot("dead")), "10 faults in a row"):
        played(bot("dead"))


def test_elsewhere_the_first_fault_is_an_error() -> None:
    one = player(TRESSETTE, bot("illegal"))
    with error_about(ProcessPlayerError, PlayerSpec.parse(bot("illegal")), "legal: ["):
        play(TRESSETTE, stream(1, "x", 0, 1), [one], np.zeros((1, 4), np.uint8))


def test_seconds_are_of_silence_not_of_a_batch() -> None:
    one, seeds = player(TRESSETTE, bot("slow", limit=1)), stream(1, "slow", 0, 30)
    one.begin(seeds)
    before = time.monotonic()
    one.act(Decisions(TRESSETTE, TRESSETTE.deal(seeds), np.arange(30)))
    assert time.monotonic() - before > 1.5


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("process", "needs a command"),
        ("process(no-such-program --x)", "no-such-program"),
        ("process(python 'bot.py)", "quotation"),
        ("process:python bot.py:second=3", "second"),
        ("process:python bot.py:seconds=0", "seconds"),
    ],
)
def test_what_cannot_be_a_program(text: str, says: str) -> None:
    with pytest.raises(SettingsError, match=says) as caught:
        resolve(TRESSETTE, text)
    assert caught.value.key == "players"


def test_a_program_that_does_not_start() -> None:
    for text in (f"process({sys.executable} -c 'raise SystemExit(\"no model\")')", bot("old")):
        with pytest.raises(ProcessPlayerError, match=r"no model|'protocol'"):
            player(TRESSETTE, text)


def test_a_tournament_in_several_processes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The same results as in one; the example that the page shows beats chance; one line says what was lost."""
    example = f"process({sys.executable} {ROOT / 'examples' / 'process_player.py'})"
    results = []
    for count in (1, 2):
        marker, out = tmp_path / f"marker-{count}", tmp_path / f"out-{count}"
        players = f"players=[{in_quotes(example)},{in_quotes(bot('illegal', marker))},random]"
        if count == 2:
            marker.touch()
            players = f"players=[{in_quotes(example)},random]"
        assert main([players, "deals=32", f"folder={out}", f"processes={count}", "batch_deals=16"]) == 0
        results.append(json.loads((out / "results.json").read_text())["pairs"])
        lost = f"{spelled('players', bot('illegal', marker))} lost 1 of 128 games by faults: 1 illegal\n"
        assert (lost in capsys.readouterr().out) == (count == 1)
    (alone,) = [pair for pair in results[0] if pair["first"] == example and pair["second"] == "random"]
    assert [alone] == results[1] and alone["first_won_low"] > 0.5


def test_nothing_stays_behind(tmp_path: Path) -> None:
    """A program ends with all that it has started when its player goes, and when busso is killed."""
    code = (
        "import sys, time\n"
        "from busso.cards.game import load_game\n"
        "from busso.evaluate.players import load_player, cpu\n"
        f"player = load_player(load_game('tressette'), {bot('parent', tmp_path / 'pids')!r}, cpu())\n"
        "print('there', flush=True); time.sleep(1000)"
    )
    busso = subprocess.Popen([sys.executable, "-c", code], env=os.environ | {"PYTHONPATH": str(ROOT)}, stdout=-1)
    assert busso.stdout is not None and busso.stdout.readline() == b"there\n"
    first = pids_in(tmp_path / "pids")
    assert len(alive(first)) == 2
    busso.send_signal(signal.SIGKILL)
    busso.wait()
    busso.stdout.close()
    one = player(TRESSETTE, bot("parent", tmp_path / "more"))
    second = pids_in(tmp_path / "more")
    del one
    end = time.monotonic() + seconds(10)
    while alive(first + second) and time.monotonic() < end:
        time.sleep(0.02)
    assert not alive(first + second)


def pids_in(path: Path) -> list[int]:
    """The ids that a program writes there, once it has."""
    end = time.monotonic() + seconds(10)
    while not (path.exists() and path.read_text().endswith("\n")) and time.monotonic() < end:
        time.sleep(0.02)
    return [int(pid) for pid in path.read_text().split()]
