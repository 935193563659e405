"""Symmetry of suits: a hand with renamed suits is the same hand in observations and results."""

from itertools import permutations

import numpy as np
import pytest
from numpy.typing import NDArray

from busso.cards.compiled.bits import unpack
from busso.cards.compiled.splitmix import stream
from busso.cards.game import States, load_game
from busso.cards.play import Decisions, play
from busso.cards.players import RandomPlayer
from busso.tressette.cards import ACCUSI, CARDS, PER_RANK, RANKS, SAME_RANK, SUITS
from busso.tressette.observation import BITS_WITH_ACCUSI, DECLARED, HAND, HIGHEST, LED, SIGNALS, TAKING, UNBEATEN, VOIDS

GAME = load_game("tressette", {"signals": True, "accusi": True})
HANDS = 12
TURN_ROUND = [suits for suits in permutations(range(SUITS)) if suits != (0, 1, 2, 3)]


def old_cards(suits: tuple[int, ...]) -> NDArray[np.int64]:
    """Return the old card of each new card, if the new suit `k` is the old suit `suits[k]`."""
    return np.concatenate([np.arange(RANKS) + RANKS * suit for suit in suits])


def old_bits(suits: tuple[int, ...]) -> NDArray[np.int64]:
    """Return the old bit of each new bit of an observation."""
    bits = np.arange(BITS_WITH_ACCUSI)
    for start in [*range(HAND, VOIDS, CARDS), *range(LED, TAKING, CARDS), UNBEATEN, HIGHEST]:
        bits[start : start + CARDS] = start + old_cards(suits)
    for seat in range(4):
        for new, old in enumerate(suits):
            bits[VOIDS + SUITS * seat + new] = VOIDS + SUITS * seat + old
            at, source = (SIGNALS + 12 * seat + 3 * suit for suit in (new, old))
            bits[at : at + 3] = np.arange(source, source + 3)
            declared = DECLARED + ACCUSI * seat
            for first in (0, *range(SAME_RANK, ACCUSI, PER_RANK)):
                bits[declared + first + new] = declared + first + old
    return bits


def renamed_deal(states: States, suits: tuple[int, ...]) -> States:
    renamed = states.copy()
    renamed["hands"] = 0
    for new, old in enumerate(old_cards(suits)):
        renamed["hands"] |= (states["hands"] >> np.uint64(old) & np.uint64(1)) << np.uint64(new)
    return renamed


@pytest.mark.parametrize("suits", TURN_ROUND)
def test_the_symmetry_that_networks_are_told(suits: tuple[int, ...]) -> None:
    """Bits are permuted between corresponding places of the suits; bits of no suit stay."""
    symmetry = GAME.symmetry
    assert symmetry is not None
    there = {pair: bit for bit, pair in enumerate(zip(symmetry.part.tolist(), symmetry.place.tolist(), strict=True))}
    renamed = [suits[part] if part >= 0 else part for part in symmetry.part]
    assert [there[pair] for pair in zip(renamed, symmetry.place.tolist(), strict=True)] == old_bits(suits).tolist()


@pytest.mark.parametrize("suits", TURN_ROUND)
def test_renamed_suits(suits: tuple[int, ...]) -> None:
    seeds = stream(5, "symmetry", 0, HANDS)
    renamed = renamed_deal(GAME.deal(seeds), suits)
    cards, bits = old_cards(suits), old_bits(suits)
    new_name = np.argsort(cards).astype(np.uint8)

    def watch(decisions: Decisions, actions: np.ndarray, totals: np.ndarray) -> None:
        states = decisions.states
        assert np.array_equal(
            unpack(GAME.observe(renamed), GAME.bits), unpack(GAME.observe(states), GAME.bits)[:, bits]
        )
        legal = [unpack(GAME.legal(each)[:, None], CARDS) for each in (renamed, states)]
        assert np.array_equal(legal[0], legal[1][:, cards])
        GAME.apply(renamed, new_name[actions])

    final, _ = play(GAME, seeds, [RandomPlayer()], np.zeros((HANDS, 4), np.uint8), watch=watch)
    assert final["accusi"].any()
    assert np.array_equal(GAME.returns(renamed), GAME.returns(final))
