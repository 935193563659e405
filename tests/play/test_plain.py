"""Line mode, as used by a person, a pipe or a terminal; its texts and its speed."""

import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from string import Formatter
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from busso.cards.game import States, load_game
from busso.command.conf_folder import own_games
from busso.play.language import LANGUAGES, Language, message, texts_of
from busso.play.plain import WORDS, PlainTable
from busso.play.table.seats import HUMAN, seated_player
from busso.play.table.session import Session
from busso.play.table.table import Setup, Table
from busso.train.network.q_network import DenseNetwork, NetworkPlayer
from busso.tressette.search.network_search import SearchPlayer
from busso.tressette.search.worlds import WorldSimulator
from tests.errors import key_of
from tests.limits import seconds
from tests.play.conftest import Piped
from tests.play.people import ENVIRONMENT, choice, replayed, sit_down, start, steady, talk
from tests.play.terminals import Terminal

MORE = {"spike": ("seats=3", "hands=2"), "blackjack": ("games=3",), "sette_mezzo": ("games=3",)}
GAMES = {game: (f"game={game}", "seed=7", *MORE.get(game, ())) for game in own_games()}


@pytest.mark.parametrize("name", GAMES)
def test_a_whole_game_through_a_pipe(name: str, tmp_path: Path, piped: Piped) -> None:
    """The lines of a game played in this process, piped to the command, give the same output."""
    typed: list[str] = []

    def noting(session: Session) -> str:
        typed.append(steady(session))
        return typed[-1]

    said, session = talk(noting, *GAMES[name])
    code, out, err = piped("".join(typed), *GAMES[name], "record=games.jsonl")
    welcome, _, rest = out.partition("\n")
    assert code == 0 and err == ""
    assert re.fullmatch(r"busso: .*, seed 7\. Type \? or help for all commands\. One moment\.", welcome)
    assert rest == said and rest.endswith("Good-bye.\n") and "\x1b" not in rest
    assert len(replayed(tmp_path / "games.jsonl")) == session.table.score.games
    assert not (tmp_path / "saves").exists()


def test_a_game_at_a_terminal(tmp_path: Path) -> None:
    """Left halfway by the end of the input, Ctrl-D, and resumed."""
    terminal = Terminal(tmp_path, "ui=plain", "game=sette_mezzo", "seed=5", "record=games.jsonl")
    terminal.wait_for("Your turn, seat 0:")
    answers = {"5X": "neither an action", "show": "You may: stick, hit", "undo": "Nothing to undo"}
    for word, answer in answers.items():
        terminal.press(f"{word}\n")
        terminal.wait_for(answer)
        terminal.wait_for("Your turn, seat 0:")
    terminal.press("\x04")
    assert terminal.end() == 0 and "Saved: resume with busso play save=saves/sette_mezzo-5.json" in terminal.said
    talk(steady, f"save={tmp_path / 'saves' / 'sette_mezzo-5.json'}", f"record={tmp_path / 'games.jsonl'}")
    assert len(replayed(tmp_path / "games.jsonl")) == 1


def test_a_lost_connection_saves_the_game(tmp_path: Path) -> None:
    terminal = Terminal(tmp_path, "ui=plain", "game=sette_mezzo", "seed=3")
    terminal.wait_for("Your turn, seat 0:")
    terminal.process.send_signal(signal.SIGHUP)
    assert terminal.end() == 130 and "interrupted" in terminal.said
    assert sit_down(f"save={tmp_path / 'saves' / 'sette_mezzo-3.json'}").table.person_to_move


def test_whoever_reads_may_go(tmp_path: Path) -> None:
    process = start(tmp_path, ("game=sette_mezzo", "seed=3"), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout is not None and process.stdin is not None
    assert any(line.startswith(b"Your turn") for line in process.stdout)
    process.stdout.close()
    process.stdin.write(b"show\n")
    process.stdin.close()
    assert process.wait(seconds(60)) == 141
    assert (tmp_path / "saves" / "sette_mezzo-3.json").exists()


GARBAGE = ["", " ", "3d", "RB", "99", "-1", "0", "4", "hit", "stick", "match", "buy", "a" * 10_000, "½ è", "4D 5D"]
GARBAGE += ["\t", "\x00\x1b[31m", "%s {line}", "sì", "HELP"]


@pytest.mark.parametrize(("name", "lang"), zip([*own_games(), "match"], ["en", "it", "en", "it", "it"], strict=True))
def test_random_lines_do_no_harm(name: str, lang: str, tmp_path: Path) -> None:
    """120 lines at each table, 600 in all; every finished game can be replayed."""
    random, typed = np.random.default_rng([len(name), len(lang), ord(lang[0])]), [0]
    overrides = ("match=11", "accusi=true", "seed=1") if name == "match" else (f"game={name}", "seed=1")
    hint = ("hint=monte_carlo:samples:2",) if name in ("tressette", "match", "spike") else ()
    words = [*WORDS, *(texts_of(lang)[f"word.{word}"] for word in WORDS)]
    allowed = [word for word in words if word not in ("quit", "esci")]

    def answer(session: Session) -> str:
        table = session.table
        typed[0] += 1
        if typed[0] > 120:
            return ""
        if table.hand.over:
            return "again\n"
        assert table.person_to_move
        kind = random.random()
        if kind < 0.5:
            return table.game.action_text(choice(table)) + "\n"
        if kind < 0.75:
            return str(random.choice(allowed)) + "\n"
        return str(random.choice(GARBAGE)) + "\n"

    record, save = tmp_path / "games.jsonl", tmp_path / "table.json"
    said, session = talk(answer, *overrides, *hint, f"lang={lang}", f"record={record}", f"save={save}")
    assert typed[0] > 120 and said.count("\n") > 120
    replayed(record)
    assert sit_down(f"save={save}").table.hand.actions == session.table.hand.actions


def test_two_people_at_one_table() -> None:
    said, session = talk(steady, "opponents=[greedy,human]", "seed=3")
    assert "Seat 0: you.\nSeat 1: greedy.\nSeat 2: greedy.\nSeat 3: you.\n" in said
    asked = re.findall(r"Your turn, seat (\d):", said)
    assert asked == [str(move.seat) for move in session.table.hand.moves if move.seat in (0, 3)]
    # The person to move sees only their own hand.
    hands = re.findall(r"Your hand: (.*)\n", said)
    assert len(hands) == 20 and not set(hands[0].split()) & set(hands[1].split())


def test_actions_by_their_name_in_either_language_and_by_number() -> None:
    table = PlainTable(sit_down("game=spike", "seed=2"), Language("it"), 1, sys.stdin, sys.stdout)
    for typed, action in (("PASSA", 2), ("fold", 2), ("2", 2), ("swap with the spike card", 6), ("9", None)):
        assert table.action_of(typed) == action
    cards = PlainTable(sit_down("seed=2"), Language("it"), 1, sys.stdin, sys.stdout)
    assert cards.action_of("3d") == 9 and cards.action_of("3") is None


ERRORS = {
    ("opponents=gredy",): "opponents",
    ("partner=monte_carlo:depth:2",): "opponents",
    ("game=chess",): "game",
    ("match=12",): "match",
    ("game=spike", "match=21"): "match",
    ("game=blackjack", "opponents=random"): "opponents",
    ("game=spike", "partner=random"): "partner",
    ("opponents=[greedy]",): "opponents",
    ("opponents=3",): "opponents",
    ("seat=4",): "seat",
    ("game=spike", "seats=4", "min_seats=2", "seat=2"): "seat",
    ("games=0",): "games",
    ("seed=-1",): "seed",
    ("lang=fr",): "lang",
    ("ui=teletype",): "ui",
    ("hint=greedy",): "hint",
    ("volume=3",): "volume",
    ("game.limit=3",): "game.limit",
    ("record=/",): "/",
    ("save=/",): "/",
    ("opponents=runs/nowhere",): "opponents",
}


@pytest.mark.parametrize("arguments", ERRORS, ids=" ".join)
def test_an_error_is_one_clear_line(arguments: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    from busso.play.__main__ import main

    assert main(arguments) == 2
    assert key_of(capsys.readouterr().err) == ERRORS[arguments]


def test_the_first_line_waits_for_nothing_slow() -> None:
    """PyTorch and compiled code are not loaded yet when it is printed."""
    code = (
        "import builtins, sys\n"
        "from busso.play.__main__ import main\n"
        "def say(*args, **more):\n"
        "    bad = {'torch', 'ray', 'matplotlib', 'busso.train.players.trained'} & set(sys.modules) or []\n"
        "    from busso.cards.compiled.batch import batch_loops\n"
        "    sys.stderr.write(f'{bad} {batch_loops.cache_info().currsize}')\n"
        "    raise SystemExit(0)\n"
        "builtins.print = say\n"
        "main(['seed=7'])\n"
    )
    found = subprocess.run([sys.executable, "-c", code], env=ENVIRONMENT, check=False, capture_output=True, text=True)
    assert found.stderr == "[] 0"


ENGLISH = texts_of("en")
CARDS = 40  # games with this many actions play cards, whose names do not depend on the language


def places(text: str) -> set[str]:
    return {name for _, name, _, _ in Formatter().parse(text) if name is not None}


@pytest.mark.parametrize("name", LANGUAGES)
def test_every_language_has_every_text_with_its_places(name: str) -> None:
    texts = texts_of(name)
    assert list(texts) == list(ENGLISH)
    assert {key: places(text) for key, text in texts.items()} == {key: places(text) for key, text in ENGLISH.items()}
    assert all(text.strip() and "\n" not in text for text in texts.values())


def test_every_word_has_a_name_and_a_help() -> None:
    for group in ("word", "help"):
        assert {f"{group}.{word}" for word in WORDS} == {key for key in ENGLISH if key.startswith(f"{group}.")}


@pytest.mark.parametrize("name", LANGUAGES)
def test_words_and_actions_can_be_told_apart(name: str) -> None:
    language = Language(name)
    words = {language.say(f"word.{word}") for word in WORDS} | set(WORDS)
    assert len({language.say(f"word.{word}") for word in WORDS}) == len(WORDS)
    for game in map(load_game, own_games()):
        texts = [game.action_text(action) for action in range(game.actions)]
        called = [language.action(game.name, text) for text in texts]
        assert len(set(called)) == game.actions and not words & set(called + texts)


def test_every_action_with_a_name_has_one_in_every_language() -> None:
    for game in map(load_game, own_games()):
        for action in range(game.actions if game.actions < CARDS else 0):
            assert f"action.{game.name}.{game.action_text(action)}" in ENGLISH


def test_a_message_in_a_message_is_said_in_the_same_language() -> None:
    told = message("event.wins", seat=2, rule=message("rule.lot"))
    assert Language("en").render(told) == "Seat 2 wins the pool: a complete tie, by lot."
    assert Language("it").render(told) == "Il posto 2 vince il piatto: del tutto pari, a sorte."
    declared = message("event.declares", seat=1, accusi=(message("accuso.four", rank="A"), "x"))
    assert Language("en").render(declared) == "Seat 1 declares: four A, x."


@pytest.fixture
def one_thread() -> Iterator[None]:
    """Use one thread, as `seated_player`."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.mark.usefixtures("one_thread")
def test_a_move_of_a_network_takes_less_than_a_tenth_of_a_second() -> None:
    game = load_game("tressette")
    network = NetworkPlayer(
        DenseNetwork(game.bits, game.actions, [256, 256, 256], False)
    )  # shape of the default network
    seats = (HUMAN, *["network"] * (game.seats - 1))
    table, took = Table(Setup(game, seats, 7), lambda game, spec: network), []
    while not table.hand.over:
        before, by_person = time.perf_counter(), table.person_to_move
        table.play(choice(table)) if by_person else table.reply()
        took += [] if by_person else [time.perf_counter() - before]
    assert len(took) == 30
    assert sorted(took)[len(took) * 9 // 10 - 1] < seconds(0.1)  # the first moves compile


def test_a_search_is_compiled_when_it_sits_down(monkeypatch: pytest.MonkeyPatch, one_thread: None) -> None:
    """By replay and play-outs, as for a hint; the first tricks alone would not start a search."""
    replayed: list[int] = []

    class Watched(WorldSimulator):
        def log_likelihood(self, worlds: States, *how: Any) -> NDArray[np.float64]:
            replayed.append(int(worlds["plays"].min()))
            return super().log_likelihood(worlds, *how)

    monkeypatch.setattr("busso.tressette.search.network_search.WorldSimulator", Watched)
    player = seated_player(load_game("tressette"), "search:champion:samples:4")
    assert isinstance(player, SearchPlayer) and replayed == [8] and player.simulator.rows > 100


def test_odds_in_blackjack_name_equal_sums(piped: Piped) -> None:
    _, out, _ = piped("odds\n", "ui=plain", "game=blackjack", "seed=3")
    assert re.search(r"stand: win [\d.]+%, equal sums [\d.]+%, lose [\d.]+%", out)
