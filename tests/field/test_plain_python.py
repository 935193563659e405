"""Rules as plain Python, with NUMBA_DISABLE_JIT=1: the same games."""

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

from busso.cards.compiled.plain import plain_function
from busso.cards.compiled.splitmix import stream
from busso.cards.game import load_game
from busso.cards.play import play
from busso.cards.players import named_player
from tests.limits import seconds
from tests.own.examples import WAR
from tests.pages import ROOT
from tests.train.runs import SMALL

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


def test_a_game_in_a_file_is_tried(tmp_path: Path) -> None:
    script = f"from busso.cards.own.files import trust_game_file; print(trust_game_file({WAR!r}).name)"
    assert in_plain_python(["-c", script], tmp_path) == "war\n"


@pytest.mark.slow
def test_searches_decide_the_same_both_ways(tmp_path: Path) -> None:
    both_ways([(game, player) for game in SEARCHES for player in SEARCHES[game]], 1, tmp_path)


@pytest.mark.slow
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
