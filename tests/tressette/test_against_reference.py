"""Engine against the second implementation, move by move over thousands of random hands."""

from typing import Any

import numpy as np
import pytest

from busso.cards.compiled.batch import reward_loop
from busso.cards.compiled.bits import unpack
from busso.cards.compiled.splitmix import stream
from busso.cards.game import Game, States, load_game
from busso.tressette.cards import card_text
from busso.tressette.rules import declared_points
from tests.tressette.hidden import declared
from tests.tressette.reference import DECK, SIGNALS, SUITS, Hand

BIT = {card: 1 << number for number, card in enumerate(DECK)}


def expect_same(game: Game, states: States, references: list[Hand], number: int) -> None:
    """Compare everything in the states; for one hand in sixteen the observation, too."""
    legal, turns, leaders = game.legal(states).tolist(), states["turn"].tolist(), states["leader"].tolist()
    thirds = states["thirds"].tolist()
    for k, hand in enumerate(references):
        assert legal[k] == (0 if hand.over() else sum(BIT[card] for card in hand.legal()))
        assert turns[k] == hand.turn
        assert leaders[k] == hand.leader()
        if number % 4 == 0:  # they change only when a trick is closed
            assert thirds[k] == hand.thirds()
        if (k + number) % 8 == 0:
            expect_same_knowledge(states[k], hand)
    observed = [(k, seat) for k in range(number % 16, len(references), 16) for seat in range(4)]
    games, seats = np.array(observed, np.int64).T
    seen = unpack(game.observe(states, games, seats.astype(np.uint8)), game.bits).astype(bool)
    for row, (k, seat) in zip(seen, observed, strict=True):
        assert row.tolist() == references[k].observation(seat)


def expect_same_knowledge(state: np.void, hand: Hand) -> None:
    every = [(seat, suit) for seat in range(4) for suit in SUITS]
    signals, known_voids, owes = hand.signals(), hand.known_voids(), hand.promised()
    said = [signals.get(key) for key in every]
    assert state["signals"].ravel().tolist() == [SIGNALS.index(word) + 1 if word else 0 for word in said]
    voids = [int(state["voids"]) >> k & 1 == 1 for k in range(16)]
    assert voids == [key in known_voids for key in every]
    promised = [int(state["promised"]) >> k & 1 == 1 for k in range(16)]
    assert promised == [key in owes for key in every]
    assert [declared(state, seat) for seat in range(4)] == hand.declared
    assert [declared_points(state, team) for team in (0, 1)] == hand.accusi_points()


def dealt(game: Game, states: States) -> list[Hand]:
    records = [game.record(state, []) for state in states]
    options = game.options
    return [Hand(record["hands"], record["leader"], options.signals, options.accusi) for record in records]


@pytest.mark.parametrize(
    ("options", "hands"),
    [
        ({}, 300),
        ({"signals": True}, 200),
        ({"accusi": True}, 200),
        ({"signals": True, "first_leader": "four_of_denari", "accusi": True}, 500),  # covers the others
    ],
    ids=["default", "signals", "accusi", "all"],
)
def test_every_move(options: dict[str, Any], hands: int) -> None:
    game = load_game("tressette", options)
    random = np.random.default_rng(7)
    states = game.deal(stream(7, "reference", 0, hands))
    references = dealt(game, states)
    if "first_leader" in options:
        assert all("4D" in hand.hands[hand.turn] for hand in references)
    totals = {name: np.zeros((hands, 4), np.float32) for name in game.rewards}
    everyone = np.arange(hands)
    for number in range(40):
        expect_same(game, states, references, number)
        draws = random.integers(0, 2**32, hands).tolist()
        cards = [legal[draw % len(legal)] for draw, legal in zip(draws, [h.legal() for h in references], strict=True)]
        actions = np.array([DECK.index(card) for card in cards], np.uint8)
        before = states.copy()
        for name, reward in game.rewards.items():
            states[:] = before
            reward_loop(game.rules.apply, reward)(states, everyone, actions, totals[name])
        assert number % 4 == 3 or np.array_equal(states["thirds"], before["thirds"])
        for hand, card in zip(references, cards, strict=True):
            hand.play(card)
    expect_same(game, states, references, 40)
    assert np.all(game.over(states))
    assert any(any(hand.declared) for hand in references) == game.options.accusi
    assert game.returns(states).tolist() == [hand.points() * 2 for hand in references]
    for name, total in totals.items():
        np.testing.assert_allclose(total, [hand.rewards[name] for hand in references], atol=1e-5)


def test_deals_are_of_whole_decks() -> None:
    game = load_game("tressette")
    for hand in dealt(game, game.deal(stream(8, "reference", 0, 500))):
        assert sorted(card for cards in hand.hands for card in cards) == sorted(DECK)
        assert [len(cards) for cards in hand.hands] == [10] * 4


def test_deals_are_uniform() -> None:
    """Each card is dealt to each seat, and each seat leads, in a quarter of many deals (5 standard deviations)."""
    game = load_game("tressette")
    states = game.deal(stream(9, "reference", 0, 20_000))
    bound = 5 * np.sqrt(20_000 * 3 / 16)
    for seat in range(4):
        held = unpack(states["hands"][:, seat : seat + 1].copy(), 40).sum(axis=0)
        assert np.all(np.abs(held - 5_000) < bound), f"seat {seat}"
        assert abs(np.count_nonzero(states["leader"] == seat) - 5_000) < bound


def test_names_of_cards() -> None:
    assert [card_text(card) for card in range(40)] == DECK
