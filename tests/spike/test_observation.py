"""Observation: the table in `busso.spike.observation`, hidden cards, and cards of equal value."""

import re
from typing import Any

import numpy as np

import busso.spike.observation as layout
from busso.cards.compiled.bits import unpack
from busso.cards.compiled.splitmix import stream
from busso.cards.game import States, load_game
from busso.spike import GAME
from busso.spike.cards import VALUES
from busso.spike.state import STATE
from tests.spike.hands import dealt
from tests.spike.test_rules import played


def bits(state: np.void, seat: int) -> list[int]:
    seen = GAME.observe(np.array([state], STATE), seats=np.array([seat], np.uint8))
    return np.flatnonzero(unpack(seen, GAME.bits)[0]).tolist()


def test_table_of_the_docstring_covers_every_bit_once() -> None:
    rows = re.findall(r"^\| (\d+)(?:-(\d+))? ", layout.__doc__ or "", re.MULTILINE)
    spans = [(int(first), int(last or first)) for first, last in rows]
    assert [bit for first, last in spans for bit in range(first, last + 1)] == list(range(GAME.bits))
    starts = (layout.OWN_CARDS, layout.OWN_SUM, layout.SWAPPED_SUMS, layout.OTHERS, layout.OWN_CREDITS, layout.POOL)
    more = (layout.SECOND_POT, layout.TO_MATCH, layout.ROUND, layout.PHASE, layout.RAISER, layout.RAISES)
    last = (layout.DISCARDS, layout.FIRST, layout.HANDS_LEFT)
    assert [first for first, _ in spans] == [*starts, *more, *last]


def test_a_position_bit_by_bit() -> None:
    # Seat 0 has raised; seat 1 holds 9 and 9 of the front cards 6 9 2 9.
    state = played(dealt((6, 2, 5), (9, 9, 9)), [0])
    levels_48, levels_46, levels_6 = 13, 12, 3
    expected = [
        layout.OWN_CARDS + 19,
        layout.OWN_CARDS + 21 + 19,
        layout.OWN_SUM + 30,  # 18, capped at 15
        *range(layout.OTHERS, layout.OTHERS + 2),  # taken, still in the hand
        *range(layout.OTHERS + 25, layout.OTHERS + 25 + levels_46),
        *range(layout.OWN_CREDITS, layout.OWN_CREDITS + levels_48),
        *range(layout.POOL, layout.POOL + levels_6),
        layout.TO_MATCH,
        layout.ROUND,
        layout.PHASE,
        layout.RAISER + 1,
        layout.RAISES,
        layout.FIRST + 1,
    ]
    assert bits(state, 1) == expected


def test_bought_card_is_seen_by_its_buyer_alone() -> None:
    state = played([*dealt((6, 2, 5), (9, 9, 9)), -8], [1, 1, 3])
    own = bits(state, 0)
    assert layout.OWN_CARDS + 63 + 2 in own
    assert [bit - layout.SWAPPED_SUMS for bit in own if layout.SWAPPED_SUMS <= bit < layout.OTHERS] == [
        0,
        11 + 3,
        22 + 1,
    ]
    assert not [bit for bit in bits(state, 1) if layout.OWN_CARDS + 63 <= bit < layout.OWN_SUM]


def test_discards_are_counted_by_value() -> None:
    state = np.array([played([], [])], STATE)
    for cards, expected in (([0], [0]), ([1], [0]), ([0, 2], [0, 1]), ([30], [30]), ([31], [30]), ([30, 31], [30, 31])):
        state["discards"] = sum(1 << card for card in cards)
        seen = bits(state[0], 0)
        assert [bit - layout.DISCARDS for bit in seen if layout.DISCARDS <= bit < layout.FIRST] == expected
    state["discards"] = (1 << 62) - 1
    assert sum(layout.DISCARDS <= bit < layout.FIRST for bit in bits(state[0], 0)) == 62


def renamed_equal_cards(states: States, random: np.random.Generator) -> States:
    """Swap cards of equal value with one another."""
    new = np.arange(256)
    for value in range(-10, 11):
        cards = np.flatnonzero(value == VALUES)
        new[cards] = random.permutation(cards)
    out = states.copy()
    for name in ("deck", "hands", "spikes", "bought"):
        out[name] = new[states[name]]
    out["discards"] = 0
    for card in range(62):
        out["discards"] |= (states["discards"] >> np.uint64(card) & np.uint64(1)) << np.uint64(new[card])
    return out


def test_equal_cards_look_the_same() -> None:
    game = load_game("spike", {"seats": 4})
    random = np.random.default_rng(3)
    states = game.deal(stream(3, "looks", 0, 200))
    for _ in range(60):
        other = renamed_equal_cards(states, random)
        for seat in range(4):
            seats = np.full(states.size, seat, np.uint8)
            assert (game.observe(states, seats=seats) == game.observe(other, seats=seats)).all()
        running = np.flatnonzero(~game.over(states))
        game.apply(states, first_action(game, states, running, random), running)


def first_action(game: Any, states: States, running: Any, random: np.random.Generator) -> Any:
    choices = unpack(game.legal(states, running)[:, None], 9) * random.random((running.size, 9))
    return choices.argmax(1).astype(np.uint8)
