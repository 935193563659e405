"""`busso regret`: what a decision gains, against plain replays, and whatever it is played in."""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from busso.cards.compiled.splitmix import stream
from busso.cards.game import Game, States, load_game
from busso.cards.play import Decisions, Player
from busso.cards.player_specs import champion_file
from busso.cards.players import named_player
from busso.evaluate.regret import run as regret
from busso.evaluate.regret.__main__ import main
from busso.evaluate.regret.branches import STREAM, Branches, PlayerChoices, RegretWorker, branches_of, positions
from busso.evaluate.regret.report import rows

GAME, GREEDY = load_game("tressette"), "base=greedy"


def plainly(game: Game, state: States, player: Player) -> list[States]:
    """The states `[1]` from this one to the end, a move at a time."""
    states = [state.copy()]
    while not game.over(states[-1])[0]:
        action = player.act(Decisions(game, states[-1], np.zeros(1, np.int64)))
        states.append(states[-1].copy())
        game.apply(states[-1], action)
    return states


def many(mask: Any) -> bool:
    return int(mask).bit_count() > 1


@pytest.mark.parametrize("name", ["tressette", "spike"])
def test_branches_are_what_plain_replays_come_to(name: str) -> None:
    game, seeds = load_game(name), stream(1, STREAM, 0, 50)
    player = named_player(game, {"tressette": "greedy", "spike": "cautious"}[name])
    player.begin(seeds)
    found, replays = branches_of(game, player, seeds), 0
    for row, state, margins in zip(found.rows, found.states, found.margins, strict=True):
        met = plainly(game, game.deal(seeds[row : row + 1]), player)
        assert any(state == each[0] for each in met) and many(game.legal(state.reshape(1))[0])
        for action in range(game.actions):
            after = state.reshape(1).copy()
            if not int(game.legal(after)[0]) >> action & 1:
                assert np.isnan(margins[action])
                continue
            game.apply(after, np.array([action], np.uint8))
            returns, team = game.returns(plainly(game, after, player)[-1])[0], state["turn"] % 2
            assert margins[action] == returns[team] - returns[1 - team]
            replays += 1
    assert replays > 100


def test_each_decision_with_a_choice_is_as_likely() -> None:
    """Where in its game a position lies, from 0 to 1: mean and spread are those of a uniform draw."""
    seeds, player = stream(2, STREAM, 0, 300), named_player(GAME, "greedy")
    deals, states = positions(GAME, player, seeds)
    assert deals.tolist() == list(range(300))
    player.begin(seeds)
    places = []
    for deal, state in zip(deals, states, strict=True):
        met = [each[0] for each in plainly(GAME, GAME.deal(seeds[deal : deal + 1]), player)]
        open_ = [each for each in met if many(GAME.legal(each.reshape(1))[0])]
        places.append((next(k for k, each in enumerate(open_) if each == state) + 0.5) / len(open_))
    assert abs(np.mean(places) - 0.5) < 4 * np.std(places) / np.sqrt(300)
    assert np.std(places) == pytest.approx(np.sqrt(1 / 12), rel=0.1)


def test_gains_by_hand() -> None:
    margins = np.array([[1, -1, np.nan], [np.nan, 0, 4]], np.float32)
    own, other = (PlayerChoices(np.array(each, np.uint8), np.array([0.5])) for each in ([0, 1], [1, 2]))
    same, found, best, any_ = rows(margins, own, {"same": own, "other": other})
    assert (same.gain, same.gain_interval, same.won, same.differs) == (0, 0, 0, 0)
    assert (found.gain, found.won, found.differs, found.ms) == (1, -0.25, 1, 250)
    assert found.gain_interval == pytest.approx(1.959964 * 3)  # of -2 and 4
    assert (best.gain, best.won, any_.gain, any_.won) == (2, 0.25, 0.5, -0.125)


def bench(folder: Path, *arguments: str) -> dict[str, dict[str, Any]]:
    """The rows of results.json by player, without the time."""
    assert main([f"folder={folder}", *arguments]) == 0
    found = json.loads((folder / "results.json").read_text())["rows"]
    return {row["player"]: row | {"ms": None} for row in found}


def test_who_sees_the_deal_gains_and_chance_loses(tmp_path: Path) -> None:
    """`cheating:tricks=1` looks at what `greedy` makes of the true hands, which is just what is measured.

    Of cards that come to the same with best play it tries one alone; `greedy` goes on differently in few positions.
    """
    found = bench(tmp_path, "players=[cheating:tricks:1,random]", GREEDY, "positions=2000")
    cheating, random, best, any_ = found.values()
    assert best["gain"] >= cheating["gain"] > 0.99 * best["gain"] > 5 * best["gain_interval"]
    assert random["gain"] < -random["gain_interval"] and any_["gain"] < -any_["gain_interval"]


def test_the_base_under_another_name_gains_nothing(tmp_path: Path) -> None:
    network = champion_file(GAME)
    assert network is not None
    shutil.copy(network, tmp_path / network.name)
    found = bench(tmp_path, f"players=[champion,{tmp_path / network.name}]", "positions=300")
    for player in list(found.values())[:2]:
        assert {player[key] for key in ("gain", "gain_interval", "won", "won_interval", "differs")} == {0}


def test_stopped_damaged_and_in_other_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = ("players=[random,monte_carlo:samples:5]", GREEDY, "positions=70")
    monkeypatch.setattr(regret, "PIECE", 32)
    expected, play, done = bench(tmp_path / "whole", *asked), RegretWorker.play, list[Any]()

    def interrupted(worker: RegretWorker, task: Any) -> Branches | PlayerChoices:
        done.append(task)
        if len(done) == 5:
            raise KeyboardInterrupt
        return play(worker, task)

    monkeypatch.setattr(RegretWorker, "play", interrupted)
    assert main([*asked, f"folder={tmp_path / 'a'}"]) == 130 and not (tmp_path / "a" / "results.json").exists()
    next((tmp_path / "a").glob("played/branches*")).write_bytes(b"PK\3\4")
    assert bench(tmp_path / "a", *asked) == expected
    assert len(done) == 5 + 9  # of 12, four had been done, one of which was damaged
    assert bench(tmp_path / "a", *asked) == expected and len(done) == 14
    bench(tmp_path / "a", "players=[cheating:tricks:1]", *asked[1:])
    assert len(done) == 17  # its own decisions alone
    monkeypatch.setattr(regret, "PIECE", 7)
    assert bench(tmp_path / "b", *asked) == expected


def test_processes_play_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = ("players=[random,monte_carlo:samples:5]", GREEDY, "positions=100")
    expected = bench(tmp_path / "one", *asked)
    monkeypatch.setattr(regret, "PIECE", 32)
    assert bench(tmp_path / "two", *asked, "processes=2") == expected


def test_games_of_other_than_two_sides_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    for game in (("game=blackjack",), ("game=spike", "game.seats=3")):
        assert main([*game, "players=[random]", "base=random"]) == 2
        assert "of games of two sides" in capsys.readouterr().err
