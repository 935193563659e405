"""The league: who is drawn, who stays, who sits where, and that a run without members is a run without a league."""

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from busso.spike.cards import FOLD, MATCH, RAISE
from busso.train.dqn.replay.transitions import TransitionRecorder
from busso.train.dqn.rollout.league import KEPT, League, score, shares, superfluous
from busso.train.dqn.rollout.request import MemberScore, RolloutRequest, Weights
from busso.train.dqn.rollout.seating import player_names, seating
from busso.train.dqn.rollout.worker import RolloutWorker, seeds_and_seats
from busso.train.settings.learning import LeagueSettings
from tests.train.dqn.test_loop import run
from tests.train.runs import OWN_TO_A_RUN, equal, settings

CPU = torch.device("cpu")
MIX = "opponents.phases=[{until: null, mix: {network: 0.5, league: 0.4, random: 0.1}}]"
SPIKE = ["game=spike", "game.seats=4", "game.min_seats=2", "game.hands=2", MIX]


def league(members: int = 0, size: int = 16, recent: float = 0.5) -> League:
    found = League(LeagueSettings(every_episodes=100, size=size, recent=recent), seed=5)
    for number in range(members):
        found.join(100 * number, {"weight": torch.full((2,), float(number))})
    return found


def test_who_is_drawn_how_often() -> None:
    """(1 - win rate) squared is 1/4, 1/4, 1/4, 1/16, of 13/16; the last of four is the newest quarter."""
    assert shares([0.5, 0.5, 0.5, 0.75], 0.0) == pytest.approx([4 / 13, 4 / 13, 4 / 13, 1 / 13])
    assert shares([0.5, 0.5, 0.5, 0.75], 0.5) == pytest.approx([2 / 13, 2 / 13, 2 / 13, 1 / 26 + 1 / 2])
    assert shares([0.9, 0.5, 0.5, 0.5, 0.5], 1.0) == pytest.approx([0, 0, 0, 0.5, 0.5])
    assert shares([0.3], 0.4) == pytest.approx([1.0])


def test_draws_follow_the_shares_and_the_seed() -> None:
    assert league().draw(0) is None
    found = league(4)
    for _ in range(1000):
        found.count(3, MemberScore(won=75.0, games=100))  # win rates 1/2 of the others, and 3/4
    draws = [found.draw(512 * k) for k in range(4000)]
    counted = np.array([draws.count(number) for number in range(4)]) / len(draws)
    assert counted == pytest.approx([2 / 13, 2 / 13, 2 / 13, 1 / 26 + 1 / 2], abs=0.03)
    assert draws[:50] == [found.draw(512 * k) for k in range(50)]


def test_older_results_fade_and_those_of_who_has_left_are_not_counted() -> None:
    found = league(2)
    found.count(0, MemberScore(won=3.0, games=4))
    found.count(1, MemberScore(won=1.0, games=8))
    found.count(7, MemberScore(won=0.0, games=1000))
    found.count(None, None)
    row, kept = found.log_row(), KEPT * KEPT
    first, last = (3 * kept + 1) / (4 * kept + 2), (KEPT + 1) / (8 * KEPT + 2)
    assert row["league/win_rate_oldest"] == pytest.approx(first)
    assert row["league/win_rate_newest"] == pytest.approx(last)
    assert row["league/members"] == 2 and row["league/win_rate"] == pytest.approx((first + last) / 2)
    assert league().log_row() == {"league/members": 0.0}


def test_who_leaves() -> None:
    """Without the second of 0, 10, 40, 50, 90 there is a gap of 40; without the third, of 40; the fourth, of 50."""
    assert superfluous([0, 10, 40, 50, 90]) == 1
    assert superfluous([0, 50, 60, 70, 100]) == 2
    found = league(40, size=5)
    episodes = [member["episodes"] for member in found.state_dict()["members"]]
    assert episodes[0] == 0 and episodes[-1] == 3900 and len(episodes) == 5
    assert all(400 <= gap <= 2000 for gap in np.diff(episodes)[:-1])
    assert list(found.weights) == [number // 100 for number in episodes]


def test_a_score_is_of_games_in_which_both_sat() -> None:
    """Means of 2 against 1, 1 against 1, one without the network, 0 against 3, and one of two members."""
    totals = np.array([[1, 3, 1], [1, 1, 0], [5, 1, 1], [0, 3, 3], [4, 0, 0]], np.float32)
    own = np.array([[1, 1, 0], [1, 0, 0], [0, 0, 0], [1, 0, 0], [0, 0, 1]], bool)
    theirs = np.array([[0, 0, 1], [0, 1, 0], [1, 1, 0], [0, 1, 1], [0, 0, 0]], bool)
    assert score(totals, own, theirs) == MemberScore(won=1.5, games=3)
    assert score(totals, own, np.zeros_like(own)) == MemberScore(won=0.0, games=0)


def always(worker: RolloutWorker, action: int) -> Weights:
    """Weights with which a network always likes this action best."""
    weights = {name: torch.zeros_like(tensor) for name, tensor in worker.network.state_dict().items()}
    weights["head.bias"][action] = 1.0
    return weights


def test_the_member_that_is_drawn_sits_where_the_table_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The network always matches, one member folds, another raises; nobody else's decisions are theirs."""
    chosen = settings(tmp_path, *SPIKE)
    worker, heard = RolloutWorker(chosen, CPU), []
    watch = TransitionRecorder.watch

    def hear(recorder: TransitionRecorder, decisions: Any, actions: Any, *more: Any) -> None:
        bets = (decisions.legal >> np.uint64(FOLD)) & np.uint64(1) == 1
        heard.append((decisions.games[bets], decisions.seats[bets], actions[bets]))
        watch(recorder, decisions, actions, *more)

    monkeypatch.setattr(TransitionRecorder, "watch", hear)
    worker.load(0, always(worker, MATCH))
    names = player_names(chosen.opponents.phases)
    members = {4: always(worker, FOLD), 9: always(worker, RAISE)}
    for number, plays in ((4, FOLD), (9, RAISE), (4, FOLD), (None, MATCH)):
        heard.clear()
        rollout = worker.play(RolloutRequest(60, 40, 0.0, member=number), members.get(number or 0))
        seeds, _ = seeds_and_seats(chosen, chosen.load_game(), names, RolloutRequest(60, 40, 0.0))
        table = seating(chosen.opponents.phases, names, 60, seeds, chosen.load_game())
        games, seats, actions = (np.concatenate(column) for column in zip(*heard, strict=True))
        who = table[games, seats]
        assert set(actions[who == names.index("league")]) == {plays}
        assert set(actions[who == names.index("network")]) == {MATCH}
        assert (rollout.league is None) == (number is None)
        assert rollout.league is None or 0 < rollout.league.games < 40


def test_without_members_a_run_is_one_without_a_league(tmp_path: Path) -> None:
    mixes = ("{network: 1.0}", "{network: 0.6, league: 0.4}")
    alone, waiting = (
        run(tmp_path / name, f"opponents.phases=[{{until: null, mix: {mix}}}]", "league.every_episodes=1000")
        for name, mix in zip("ab", mixes, strict=True)
    )
    assert alone.pop("league") is None and waiting.pop("league")["members"] == []
    assert alone.pop("settings") != waiting.pop("settings")
    assert [path for path in equal(alone, waiting) if path not in OWN_TO_A_RUN] == []


def test_a_member_is_the_network_of_its_time(tmp_path: Path) -> None:
    """Members join when their number of episodes is passed, with the weights of then, not of now."""
    state = run(tmp_path, MIX, "league.every_episodes=64", "league.size=8")
    members = state["league"]["members"]
    assert [member["episodes"] for member in members] == [64, 128, 192, 256][: len(members)] and len(members) >= 3
    weights = [member["weights"]["head.bias"] for member in members]
    assert not any(torch.equal(one, other) for one, other in pairwise(weights))
    assert sum(member["games"] for member in members) > 0
