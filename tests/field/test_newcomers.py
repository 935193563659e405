"""Newcomers: one-line answers to mistakes, output that explains itself, and games as plain Python."""

import json
import os
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import busso
from busso.cards.compiled.plain import plain_function
from busso.cards.compiled.splitmix import stream
from busso.cards.game import load_game
from busso.cards.play import play
from busso.cards.players import named_player
from busso.command.settings.compose import as_yaml, compose
from busso.evaluate.report.__main__ import ReportSettings
from busso.play.language import Language
from busso.play.plain import WORDS
from busso.train.settings.dqn import TrainSettings
from busso.train.settings.resolve import settings_of
from tests.errors import refused
from tests.limits import seconds
from tests.own.examples import WAR
from tests.pages import ROOT
from tests.play.people import talk
from tests.train.runs import SMALL, settings

GAME = "sette_mezzo"
WRONG_GAMES = (None, 3, ["tressette"], busso)
WRONG_STATES = (None, "random", 3, [1, 2], np.zeros(3))
WITH_STATES: dict[str, Callable[[Any, Any], object]] = {
    "look": busso.look,
    "step": lambda game, states: busso.step(game, states, [0]),
    "choose": lambda game, states: busso.choose(game, "random", states),
}
OF_A_GAME: dict[str, Callable[[Any], object]] = {
    "deal": lambda game: busso.deal(game, 1),
    "load_player": lambda game: busso.load_player(game, "random"),
    "duel": lambda game: busso.duel(game, "random", "random", deals=2),
    "tournament": lambda game: busso.tournament(game, ["random", "hit_below_5"], deals=2),
    **{name: lambda game, call=call: call(game, busso.deal(GAME, [1])) for name, call in WITH_STATES.items()},  # type: ignore[misc]
}


@pytest.mark.parametrize("name", OF_A_GAME)
def test_a_game_is_one_or_its_name(name: str) -> None:
    """Each function also takes a game's name; anything else is a one-line error."""
    assert OF_A_GAME[name](GAME) is not None
    for wrong in WRONG_GAMES:
        assert "load_game" in str(error := refused(OF_A_GAME[name], wrong)) and error.key == "game"
    assert "chess" in str(error := refused(OF_A_GAME[name], "chess")) and error.key == "game.name"


@pytest.mark.parametrize("name", WITH_STATES)
def test_states_are_those_of_the_game(name: str) -> None:
    of_another = busso.deal("blackjack", range(2))
    for wrong in (*WRONG_STATES, of_another):
        assert "deal returns" in str(error := refused(WITH_STATES[name], GAME, wrong)) and error.key == "states"


@pytest.mark.parametrize("command", ["tournament", "play"])
def test_a_word_that_is_no_setting(command: str) -> None:
    """It may have been meant as a command."""
    typed = command[:-1] if len(command) > 4 else command
    line = str(refused(compose, TrainSettings, "train", [typed]))
    assert line == f"{typed}: unknown setting; did you mean busso {command}?"


def test_nothing_given_is_not_quoted() -> None:
    error = refused(compose, ReportSettings, "report", [])
    assert error.key == "run" and "given" not in str(error) and "run=" in str(error)


def test_the_opponents_of_evaluations_play_under_all_rules() -> None:
    """A champion would refuse rules that it was not trained with."""
    chosen = settings_of(["game.first_leader=four_of_denari", "game.signals=true", "game.accusi=true"])
    assert isinstance(chosen, TrainSettings)
    game = chosen.load_game()
    for name in chosen.evaluation.opponents:
        assert busso.duel(game, name, "random", deals=4).wins.size == 4


def test_an_evaluation_has_an_opponent_that_is_hard_to_beat() -> None:
    """The champion beats `greedy` and `study_heuristic`."""
    chosen = settings_of([])
    assert isinstance(chosen, TrainSettings)
    hardest = chosen.evaluation.opponents[-1]
    for weaker in ("greedy", "study_heuristic"):
        assert busso.duel("tressette", hardest, weaker, deals=1024).win_rate.low > 0.55


@pytest.mark.parametrize(
    ("game", "lang"), [("tressette", "it"), ("spike", "en"), ("blackjack", "it"), ("sette_mezzo", "en")]
)
def test_words_that_everyone_types(lang: str, game: str) -> None:
    """`?`, `h`, `q` and the word for the rules are understood; card notation is explained before the first use."""
    say = Language(lang)
    typed = iter(["?\n", "h\n", f"{say.say('word.rules')}\n", "rules\n", "q\n"])
    said, _ = talk(lambda session: next(typed), f"game={game}", "seed=7", f"lang={lang}")
    assert said.count(say.say("plain.help")) == 2
    assert all(said.count(f"\n{text}\n") >= 2 for text in say.rules(game))
    before = said.partition(say.say("plain.your_turn", seat=0))[0]
    assert all(text in before for text in say.under(f"help_screen.read.{game}."))
    assert all(say.say(f"word.{word}") in said for word in WORDS) and next(typed, None) is None


def test_a_run_is_shown_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text(as_yaml(settings(tmp_path)))
    assert repr(busso.load_run(tmp_path)) == f"Run('{tmp_path}', game='tressette')"


GAMES: dict[str, dict[str, Any]] = {
    "tressette": {"signals": True, "accusi": True},
    "spike": {"seats": 4},
    "sette_mezzo": {},
    "blackjack": {"decks": 2, "ties": "push", "soft_17": "hit"},
}
HANDS = 4
SEARCHES = {
    "tressette": ("monte_carlo:samples:2", "cheating:tricks:2"),
    "spike": ("monte_carlo:samples:2",),
}
RECORD = np.dtype([("word", np.uint64), ("sum", np.uint8), ("cards", np.uint8, 3)])


def in_plain_python(arguments: list[str], folder: Path) -> str:
    """Return the output of a Python command without compiled code."""
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1", "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-W", "error::RuntimeWarning", *arguments]
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=seconds(100), check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def played(game_name: str, player: str, hands: int) -> list[Any]:
    """Return everything about the hands: observations, actions, last states, results and rewards."""
    game, seen = load_game(game_name, GAMES[game_name]), list[Any]()
    states, totals = play(
        game,
        stream(7, "plain", 0, hands),
        [named_player(game, player)],
        np.zeros((hands, game.seats), np.uint8),
        next(iter(game.rewards.values())),
        lambda decisions, actions, _: seen.append([decisions.observation.tolist(), actions.tolist()]),
        observed=True,
    )
    fields = {name: states[name].tolist() for name in game.dtype.names or ()}
    answer = [seen, fields, game.returns(states).tolist(), totals.tolist()]
    return json.loads(json.dumps(answer))


def both_ways(tables: list[tuple[str, str]], hands: int, folder: Path) -> None:
    """Compare games and players with one plain-Python process for all, since its start takes longer than the games."""
    script = f"import json; from {__name__} import played; print(json.dumps([played(*t, {hands}) for t in {tables}]))"
    other = json.loads(in_plain_python(["-c", script], folder))
    for table, found in zip(tables, other, strict=True):
        assert found == played(*table, hands), table


def test_hands_are_the_same_both_ways(tmp_path: Path) -> None:
    both_ways([(game, name) for game in GAMES for name in ("random", [*load_game(game).policies][-1])], HANDS, tmp_path)


@pytest.mark.slow
def test_searches_decide_the_same_both_ways(tmp_path: Path) -> None:
    both_ways([(game, player) for game in SEARCHES for player in SEARCHES[game]], 1, tmp_path)


@pytest.mark.slow
def test_a_game_in_a_file_is_tried_in_plain_python(tmp_path: Path) -> None:
    script = f"from busso.cards.own.files import trust_game_file; print(trust_game_file({WAR!r}).name)"
    assert in_plain_python(["-c", script], tmp_path) == "war\n"


def test_a_run_trains_in_plain_python(tmp_path: Path) -> None:
    in_plain_python(["-m", "busso.train", *SMALL, "game=blackjack", "episodes=64"], tmp_path)
    assert (tmp_path / "runs" / "blackjack" / "default" / "results.json").exists()


@pytest.mark.parametrize("as_record", [lambda array: array, lambda array: array[0]], ids=["array", "record"])
def test_numbers_are_those_of_compiled_code(as_record: Callable[[Any], Any]) -> None:
    array = np.zeros(1, RECORD)
    array["sum"], array["word"] = 250, 2**64 - 1

    def rule(states: Any) -> Any:
        state = states[0] if isinstance(states, np.ndarray) else states
        state.word += np.uint64(3)  # wraps
        wide = state.sum + 10  # does not wrap
        state.sum = wide  # truncated
        state.cards[1] -= 1
        return wide, 1 << state.cards[1]

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert plain_function(rule)(as_record(array)) == (260, 1 << 255)
    assert (array["word"][0], array["sum"][0], array["cards"][0].tolist()) == (2, 4, [0, 255, 0])
