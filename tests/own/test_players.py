"""Players in files: a class, a function of one seat's view, a compiled rule; by name and in Python."""

import io
import json
import re
from pathlib import Path

import numpy as np
import pytest

import busso
from busso.base import own_files
from busso.base.own_files import OwnCodeError
from busso.cards.own.players import own_player, player_from
from busso.cards.play import Decisions, play
from busso.cards.player_specs import PlayerSpec
from busso.command.settings.checks import SettingsError
from busso.evaluate.review.__main__ import main as review
from busso.evaluate.tournament.__main__ import main as tournament
from busso.play.__main__ import main as table
from busso.train.__main__ import main as train
from busso.train.players.resolve import resolve
from busso.train.players.trained import check_players
from tests.errors import error_about
from tests.own.conftest import Write
from tests.own.examples import FOLDER, WAR, changed
from tests.own.test_network import NORM, arguments
from tests.train.runs import settings

MINE = str(FOLDER / "mine.py")
PLAYERS = ["Lowest:depth:1", "thrifty", "chance", "first"]
BAD = """from busso.kit import njit
from json import JSONDecoder as Imported

class Breaks:
    def begin(self, seeds):
        pass
    def act(self, decisions):
        return self.table

class Needs:
    def __init__(self, game, width): ...
    def begin(self, seeds): ...
    def act(self, decisions): ...

class Short(Breaks):
    def act(self, decisions):
        return decisions.legal[1:]

def wrong(seen):
    return seen.hnad[0]

def nothing(seen, depth=0, tone="low"):
    pass

def illegal(seen):
    return next(card for card in range(20) if card not in seen.legal)

def quits(seen):
    raise SystemExit(0)

@njit
def no_field(state, random_bits):
    return state.hanz
"""
ONE = """def helper(a, b):
    return a

def only(seen):
    return seen.legal[0]
"""
EVIL = """open("ran", "w")
def player(seen):
    return seen.legal[0]
"""
LATE = """GAMES = []
def late(seen, most=400):
    GAMES.append(1)
    return seen.legal[0 if len(GAMES) < most else 99]
"""
VALUER = """import numpy as np

class Valuer:
    def __init__(self, game, scale: float = 1.0):
        self.game, self.scale = game, scale
    def begin(self, seeds):
        pass
    def act(self, decisions):
        return np.nanargmax(self.action_values(decisions), axis=1)
    def action_values(self, decisions):
        worth = self.scale * np.arange(self.game.actions)
        legal = decisions.legal[:, None] >> np.arange(self.game.actions, dtype=np.uint64) & np.uint64(1)
        return np.where(legal, worth, np.nan)
"""
STUCK = """def lowest(seen):
    return min(seen.legal)
"""
NAMES = [rank + suit for suit in "DCSB" for rank in "12345"]
# By name in bad.py: part of the faulty line, problem, and hint.
WRONG = {
    "Breaks": ("return self.table", "act: AttributeError: 'Breaks' object has no attribute 'table'", "legal: "),
    "Short": ("def act(self, decisions):\n        return decisions.legal[1:]", "one for each decision, not", "legal: "),
    "wrong": ("seen.hnad", "AttributeError: what is seen has no 'hnad'; war has hand, table, own_played", "legal: "),
    "nothing": ("def nothing", "act: TypeError: returned None, which is not an action number", "legal: "),
    "illegal": ("def illegal", " of war, in the game of seed ", "legal: "),
    "quits": ("raise SystemExit(0)", "act: SystemExit: 0", "legal: "),
    "no_field": ("@njit", "hanz", ""),
}


@pytest.fixture
def war() -> busso.Game:
    return busso.load_game(WAR)


@pytest.mark.parametrize("name", PLAYERS)
def test_a_player_in_a_file_plays_by_its_rule(war: busso.Game, name: str) -> None:
    """Compared with a copy of the rule in this test, from the same seeds."""
    found = busso.load_player(war, f"{MINE}:{name}")
    seeds, rows = np.arange(50, dtype=np.uint64), []

    def watch(decisions: Decisions, actions: np.ndarray, totals: np.ndarray) -> None:
        rows.append((decisions.states[decisions.games], decisions.legal, actions.copy()))

    play(war, seeds, [found], np.zeros((50, 2), np.uint8), watch=watch)
    again = list(rows)
    rows.clear()
    play(war, seeds, [found], np.zeros((50, 2), np.uint8), watch=watch)
    assert all(np.array_equal(a[2], b[2]) for a, b in zip(again, rows, strict=True))
    if name == "chance":
        return
    for states, legal, actions in rows:
        for state, mask, action in zip(states, legal.tolist(), actions.tolist(), strict=True):
            cards = [card for card in range(20) if mask >> card & 1]
            taking = [card for card in cards if state["led"] != 255 and card > state["led"]]
            wanted = {"Lowest:depth:1": cards[min(1, len(cards) - 1)], "thrifty": min(taking or cards)}
            assert action == wanted.get(name, cards[0])


def test_what_one_seat_sees(war: busso.Game) -> None:
    looked = []

    def look(seen: busso.players.Any) -> int:
        assert [seen.bits[card] for card in range(20)] == [int(card in seen.hand) for card in range(20)]
        assert seen.own_tricks == seen.bits[80:90].sum() and seen.names[:2] == ("1D", "2D")
        looked.append((seen.seat, seen.random.random()))
        return int(seen.legal[-1])

    busso.duel(war, look, "random", deals=4)
    once = list(looked)
    looked.clear()
    busso.duel(war, look, "random", deals=4)
    assert looked == once and len({value for _, value in once}) >= len(once) / 2  # both plays of a deal are equal
    assert {seat for seat, _ in once} == {0, 1}


def test_players_passed_in_python(war: busso.Game) -> None:
    own = busso.load_player(war, f"{MINE}:thrifty")

    def mine(seen: busso.players.Any) -> int:
        taking = [card for card in seen.legal if seen.table and card > seen.table[0]]
        return int(min(taking or seen.legal))

    found = busso.tournament(war, [mine, f"{MINE}:thrifty", "random", own], deals=64)
    assert found.duels[("mine", f"{MINE}:thrifty")].points.mean == 0
    assert found.duels[("mine", "random")].wins.tolist() == found.duels[(f"{MINE}:thrifty", "random")].wins.tolist()
    assert busso.choose(war, mine, busso.deal(war, range(3))).size == 3
    assert busso.duel("tressette", lambda seen: max(seen.legal), "random", deals=8).wins.size == 8
    for wrong in (lambda: 0, lambda a, b, c: 0, object(), 3):
        with error_about(busso.BussoError, "players", "a name or an object"):
            player_from(war, wrong)
    with error_about(busso.BussoError, "players", "each player once, not 'mine'", "attribute __name__ is its name"):
        busso.tournament(war, [mine, mine])


@pytest.mark.parametrize("field", ["states", "legal"])
def test_a_player_that_changes_the_game_is_named(war: busso.Game, field: str) -> None:
    class Spoiler:
        def begin(self, seeds: np.ndarray) -> None: ...

        def act(self, decisions: Decisions) -> np.ndarray:
            lowest = [int(mask & -mask).bit_length() - 1 for mask in decisions.legal.tolist()]
            if field == "states":
                decisions.states["taken"][decisions.games, 0] += 1
            else:
                decisions.legal[:] = np.uint64(2**20 - 1)
            return np.array(lowest, np.uint8)

    with error_about(
        busso.BussoError, "Spoiler.act in war", "changed the states or the legal actions of its decisions"
    ):
        busso.duel(war, Spoiler(), "random", deals=16)


@pytest.mark.parametrize("name", WRONG)
def test_a_fault_names_file_line_and_player(war: busso.Game, write: Write, name: str) -> None:
    """The trial finds it before anything starts."""
    part, says, hint = WRONG[name]
    own_files.trust(typed := write("bad.py", BAD))
    line = BAD[: BAD.index(part)].count("\n") + 1
    with error_about(OwnCodeError, f"{typed}:{line}", f"{typed}:{name}: ", hint) as error:
        resolve(war, f"{typed}:{name}")
    assert says in error.value.problem


def test_what_there_is_in_a_file(war: busso.Game, write: Write) -> None:
    own_files.trust(typed := write("bad.py", BAD))
    own_files.trust(one := write("one.py", ONE))
    for player, says, hint in (
        (typed, "bad.py has 7 players", "choose one: Breaks, Short, wrong, nothing, illegal, quits, no_field"),
        (f"{typed}:Imported", "does not define 'Imported'", "available: Breaks, "),
        (f"{typed}:json", "does not define 'json'", "available: Breaks, "),
        (f"{typed}:Needs", "Needs needs width: give it a default", "available: Breaks"),
        (f"{one}:helper", "helper is not a player", "available: only"),
        (f"{typed}:nothing:deep:3", "unknown option 'deep'", "nothing has depth, tone"),
        (f"{typed}:nothing:depth:x", "depth: expected an integer, not 'x'", ""),
        (f"{typed}:wrong:depth:3", "unknown option 'depth'", "wrong has no options"),
        ("./nowhere.py:x", "./nowhere.py does not exist", ""),
    ):
        with error_about(SettingsError, "players", says, hint):
            resolve(war, player)
    assert resolve(war, one).name == one and own_player(PlayerSpec.parse(one)).options == {}


def test_a_file_that_was_not_typed_does_not_run(war: busso.Game, write: Write) -> None:
    evil = f"{write('evil.py', EVIL)}:player"
    with error_about(
        SettingsError, "opponents.only", "is code, which runs only if you name it", "opponents.only=... with"
    ):
        resolve(war, evil, "opponents.only")
    of_a_file = settings(Path("runs"))
    of_a_file.evaluation.opponents = [evil]
    with error_about(SettingsError, "evaluation.opponents", "is code, which runs only if you name it"):
        check_players(of_a_file)
    assert not Path("ran").exists()
    check_players(settings(Path("runs"), f"evaluation.opponents=[{evil}]"))
    assert Path("ran").exists()


@pytest.mark.parametrize("processes", [1, 2])
def test_a_fault_in_any_process_is_one_line(write: Write, capsys: pytest.CaptureFixture[str], processes: int) -> None:
    """After passing the trial of 16 games with at most 320 decisions."""
    typed = write("late.py", LATE)
    given = [f"game={WAR}", f"players=[{typed},random]", "deals=256", "folder=t", f"processes={processes}"]
    assert tournament(given) == 2
    line = capsys.readouterr().err.strip().splitlines()[-1]
    assert line.startswith(f"error: {typed}:4: {typed}: act: IndexError: list index out of range")


def test_a_game_that_its_players_never_end_is_one_line(
    write: Write, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the game, a seat that leads keeps its lowest card while it has another; the player always plays that one."""
    monkeypatch.setattr("busso.cards.play.MOST_MOVES", 2_000)
    kept = "    state.hands[seat] ^= bit(card)\n"
    more = "state.hands[seat] > bit(card)"
    held = f"    if state.led == NONE and lowest(state.hands[seat]) == card and {more}:\n        return\n{kept}"
    changes = (kept, held), ("policies=[sluff]", "policies=[]")
    game, stuck = write("stuck.py", changed(WAR, *changes)), write("low.py", STUCK)
    given = [f"game={game}", f"players=[{stuck}:lowest,random]", "deals=4", "folder=t", "processes=1"]
    assert tournament(given) == 2
    line = capsys.readouterr().err.strip().splitlines()[-1]
    assert line.startswith("error: stuck: the game of seed 1 has not ended after 2,000 moves; add a rule that ends it")


def test_a_game_may_end_with_the_last_move_that_is_allowed(war: busso.Game, monkeypatch: pytest.MonkeyPatch) -> None:
    seeds, seating = np.arange(4, dtype=np.uint64), np.zeros((4, 2), np.uint8)
    rounds: list[int] = []
    player = busso.load_player(war, "random")
    play(war, seeds, [player], seating, watch=lambda *_: rounds.append(1))
    monkeypatch.setattr("busso.cards.play.MOST_MOVES", len(rounds))
    play(war, seeds, [player], seating)
    monkeypatch.setattr("busso.cards.play.MOST_MOVES", len(rounds) - 1)
    with pytest.raises(OwnCodeError, match="has not ended after"):
        play(war, seeds, [player], seating)


def test_an_argument_declared_a_float_takes_any_number(war: busso.Game, write: Write) -> None:
    text = "def by(seen, share: float = 0, most=1, tone: 'float' = 2):\n    return seen.legal[int(share * most)]\n"
    typed = write("by.py", text)
    own_files.trust(typed)
    given = own_player(PlayerSpec.parse(f"{typed}:share:0.5:most:3:tone:.25")).options
    assert given == {"share": 0.5, "most": 3, "tone": 0.25} and type(given["most"]) is int
    with error_about(SettingsError, "players", "most: expected an integer, not '0.5'", ""):
        resolve(war, f"{typed}:most:0.5")


@pytest.mark.parametrize(
    "rollout",
    [
        pytest.param(("rollout=local",), id="local"),
        pytest.param(("rollout=ray", "rollout.workers=1"), id="ray", marks=pytest.mark.ray),
    ],
)
def test_as_an_opponent_in_training(
    write: Write, tmp_path: Path, capsys: pytest.CaptureFixture[str], rollout: tuple[str, ...]
) -> None:
    """Workers get the source of the game, the players and the network."""
    mix = f"opponents.phases=[{{until: null, mix: {{network: 0.7, {MINE}:Lowest:depth:2: 0.2, {MINE}:first: 0.1}}}}]"
    given = [f"network={write('norm.py', NORM)}", f"evaluation.opponents=[{MINE}:thrifty]", mix, "episodes=64"]
    assert train(arguments(tmp_path, *rollout, *given)) == 0
    (folder,) = (tmp_path / "war").iterdir()
    assert f"{MINE}:thrifty" in json.loads((folder / "results.json").read_text())
    assert f"win_rate_vs_{MINE.replace('/', '_').replace(':', '.')}.thrifty" in (folder / "metrics.csv").read_text()


def test_at_the_table(write: Write, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """A save names a file, which runs only if it is typed again."""
    mine = write("mine.py", Path(MINE).read_text())
    for words, code, says in (
        ((f"opponents={mine}:thrifty", "save=s.json", "seed=3"), 0, f"Seat 1: {mine}:thrifty."),
        (
            ("save=s.json",),
            2,
            f"error: opponents: {mine}:thrifty is code, which runs only if you name it; if you trust it",
        ),
        (("save=s.json", f"opponents={mine}:thrifty"), 0, f"Seat 1: {mine}:thrifty."),
        (
            (f"opponents={mine}:nobody",),
            2,
            f"error: opponents: {mine}:nobody: {mine} does not define 'nobody'; available: Lowest",
        ),
    ):
        monkeypatch.setattr(own_files, "_trusted", {})
        monkeypatch.setattr("sys.stdin", io.StringIO("quit\n"))
        assert table([f"game={WAR}", "ui=plain", *words]) == code
        found = capsys.readouterr()
        assert says in found.out + found.err


def test_a_class_with_action_values_grades(write: Write, capsys: pytest.CaptureFixture[str]) -> None:
    """If a card is worth its number, the highest is best, and `first` often plays another."""
    given = [f"game={WAR}", f"players=[{MINE}:first,random]", "deals=2", "records=2", "folder=t", "processes=1"]
    assert tournament(given) == 0
    valuer = write("val.py", VALUER)
    assert review([f"game={WAR}", "t/games.jsonl", f"by={valuer}:Valuer:scale:2"]) == 0
    text = capsys.readouterr().out
    assert f"graded by {valuer}:Valuer:scale:2" in text
    worths = re.findall(r"worth +(.*)$", text, re.M)
    assert worths
    for found in worths:
        values = {name: float(value) for name, value in re.findall(r"(\d[DCSB]) \+([\d.]+)", found)}
        assert values == {name: 2.0 * NAMES.index(name) for name in values}
    assert review([f"game={WAR}", "t/games.jsonl", f"by={MINE}:first"]) == 2
    assert "gives no values; name a network, or a class of yours with action_values" in capsys.readouterr().err
