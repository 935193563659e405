"""Mistakes of newcomers get a one-line answer with the way out; output explains itself."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import busso
from busso.command.settings.compose import as_yaml, compose
from busso.evaluate.report.__main__ import ReportSettings
from busso.play.language import Language
from busso.play.plain import WORDS
from busso.train.settings.dqn import TrainSettings
from busso.train.settings.resolve import settings_of
from tests.errors import refused
from tests.play.people import talk
from tests.train.runs import settings

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
