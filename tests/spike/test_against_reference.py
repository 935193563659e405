"""Engine and observations against the second implementation, decision by decision over thousands of random hands."""

import itertools
from collections import Counter
from collections.abc import Generator
from typing import Any

import numpy as np
import pytest

from busso.cards.compiled.bits import unpack
from busso.cards.compiled.splitmix import stream
from busso.cards.game import States, load_game
from busso.spike.cards import NO_CARD, VALUES
from busso.spike.rules import to_match
from busso.spike.state import NO_SEAT, OVER, settle
from tests.spike.reference import Hand, Rules, Script

PHASES = {"bet": 0, "buy": 1, "exchange": 2}


class Match:
    """Match of the second implementation; random events of a hand are read from the engine at the deal."""

    def __init__(self, state: States, rules: Rules, hands: int, rotate: bool) -> None:
        self.rules, self.limit, self.rotate = rules, hands, rotate
        self.credits = [int(state[0]["start_credits"])] * int(state[0]["players"])
        self.second_pot = 0
        self.hands: list[Hand] = []
        self.won = [0] * len(self.credits)
        self.begin(state)

    def begin(self, state: States) -> None:
        copy = state.copy()
        settle(copy[0])
        dice = [(int(a), int(b)) for a, b in copy[0]["dice"]]
        script = Script(VALUES[copy[0]["deck"]].tolist(), dice, int(copy[0]["lot"]), int(copy[0]["shuffle"]))
        first = len(self.hands) % len(self.credits) if self.rotate else 0
        self.hand = Hand(self.rules, self.credits, script, first, self.second_pot)
        self.hands.append(self.hand)
        self.flow: Generator[None, int, None] = self.hand.play()
        next(self.flow)

    def over(self) -> bool:
        return self.hand.done() and (len(self.hands) == self.limit or 0 in self.credits)

    def play(self, action: int, after: States) -> None:
        try:
            self.flow.send(action)
        except StopIteration:
            self.won[self.hand.winner] += 1
            self.second_pot = self.hand.second_pot
            if not self.over():
                self.begin(after)


def expect_same(state: np.void, told: dict[str, Any], match: Match) -> None:
    """Compare; `told` has the fields of the state in plain Python, and the `legal` actions as a mask."""
    n = len(match.credits)
    assert (told["phase"] == OVER) == match.over()
    assert told["credits"][:n] == match.credits
    assert told["hands_won"][:n] == match.won
    assert told["second_pot"] == match.hand.second_pot
    if match.over():
        assert told["legal"] == 0
        return
    hand = match.hand
    hand.check_cards()
    assert told["legal"] == sum(1 << action for action in hand.legal())
    assert told["turn"] == hand.turn
    assert told["pool"] == hand.pool
    assert told["round"] == hand.round
    assert told["phase"] == PHASES[hand.phase]
    assert int(to_match(state)) == (hand.rules.bet if hand.raises else 0)
    assert told["raiser"] == (NO_SEAT if hand.raiser is None else hand.raiser)
    for seat in range(n):
        assert bool(told["in_hand"] >> seat & 1) == (seat not in hand.folded)
        assert [value(card) for card in told["hands"][seat]] == hand.hands[seat]
        assert value(told["spikes"][seat]) == hand.spikes[seat]
    assert value(told["bought"]) == hand.bought
    discards = [card for card in range(VALUES.size) if told["discards"] >> card & 1] if told["discards"] else []
    assert Counter(value(card) for card in discards) == Counter(hand.discards)


CARD_VALUES: list[int] = VALUES.tolist()
TABLE = ("phase", "turn", "round", "raiser", "in_hand", "pool", "second_pot", "credits", "hands_won")
FIELDS = (*TABLE, "hands", "spikes", "bought", "discards")


def value(card: int) -> int | None:
    return None if card == NO_CARD else CARD_VALUES[card]


PATIENT = [0.25, 0.7, 0.05, 0.7, 0.3, 0.25, 0.25, 0.25, 0.25]  # folds rarely, so that decks run low
EVEN = [1.0] * 9


@pytest.mark.parametrize(
    ("options", "weights", "matches"),
    [
        ({"seats": 2}, EVEN, 120),
        ({"seats": 4}, EVEN, 100),
        ({"seats": 8}, EVEN, 60),
        ({"seats": 2}, PATIENT, 100),
        ({"seats": 8}, PATIENT, 60),
        ({"seats": 8, "min_seats": 2, "rotate": True, "raise_cap": 2, "bet": 6, "ante": 4}, PATIENT, 60),
        ({"seats": 3, "sabacc_pot": True, "special_hands": True, "credits": 20}, PATIENT, 100),
    ],
    ids=["2", "4", "8", "2 patient", "8 patient", "options", "pots"],
)
def test_every_decision(options: dict[str, Any], weights: list[float], matches: int) -> None:
    game = load_game("spike", options)
    random = np.random.default_rng(5)
    states = game.deal(stream(5, "reference", 0, matches))
    names = ("ante", "bet", "raise_cap", "sabacc_pot", "special_hands")
    rules = Rules(**{name: getattr(game.options, name) for name in names})
    references = [Match(states[k : k + 1], rules, game.options.hands, game.options.rotate) for k in range(matches)]
    reshuffles = all_in = 0
    for number in itertools.count():
        if game.over(states).all():
            break
        running = np.flatnonzero(~game.over(states))
        masks = game.legal(states)
        legal = unpack(masks[running, None], 9) * weights
        chosen = (legal.cumsum(1) > random.random((running.size, 1)) * legal.sum(1, keepdims=True)).argmax(1)
        game.apply(states, chosen.astype(np.uint8), running)
        columns = {name: states[name][running].tolist() for name in FIELDS}
        columns["legal"] = game.legal(states)[running].tolist()
        for row, (k, action) in enumerate(zip(running.tolist(), chosen.tolist(), strict=True)):
            match = references[k]
            hand = match.hand
            match.play(action, states[k : k + 1])
            expect_same(states[k], {name: column[row] for name, column in columns.items()}, match)
            if hand.done():
                reshuffles += hand.reshuffles
                all_in += 0 in [c for seat, c in enumerate(match.credits) if seat != hand.winner]
        some = [k for k in running[number % 8 :: 8] if not references[k].over()]
        observed = [(k, seat) for k in some for seat in range(game.seats)]
        games, seats = np.array(observed, np.int64).reshape(-1, 2).T
        seen = unpack(game.observe(states, games, seats.astype(np.uint8)), game.bits)
        for row, (k, seat) in zip(seen.astype(bool), observed, strict=True):
            left = references[k].limit - len(references[k].hands)
            assert row.tolist() == references[k].hand.observation(seat, left)
    if options == {"seats": 8} and weights is PATIENT:
        assert reshuffles > 20
    if weights is PATIENT:
        assert all_in > 5
