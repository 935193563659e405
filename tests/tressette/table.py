"""Positions of Tressette given as text, with blanks between cards."""

from collections.abc import Sequence

import numpy as np

from busso.cards.compiled.bits import bit
from busso.cards.game import States, load_game
from busso.tressette.cards import SUIT_TEXT, SUITS, card_text, parse_card
from busso.tressette.rules import BUSSO, STRISCIO, VOLO, begin

GAME = load_game("tressette")
SIGNALLING = load_game("tressette", {"signals": True})
WORDS = {"busso": BUSSO, "striscio": STRISCIO, "volo": VOLO}

# Seat 0 has denari, seat 1 coppe, seat 2 spade, seat 3 bastoni, each in ascending order.
A_SUIT_EACH = [" ".join(rank + suit for rank in "4567FCRA23") for suit in SUIT_TEXT]
# Seats 0 and 1 have the best five of denari and coppe, and the other's worst five; so have 2 and 3 of spade and
# bastoni.
CROSSED = [
    "3D 2D AD RD CD 4C 5C 6C 7C FC",
    "4D 5D 6D 7D FD 3C 2C AC RC CC",
    "4B 5B 6B 7B FB 3S 2S AS RS CS",
    "4S 5S 6S 7S FS 3B 2B AB RB CB",
]
# Team 0 takes the five tricks of denari (10 thirds), team 1 the five of coppe (22 thirds) and the last trick.
CROSSED_PLAYS = """
    3D 4D 4B 4S   2D 5D 5B 5S   AD 6D 6B 6S   RD 7D 7B 7S   CD FD FB FS
    4C 3C 3S 3B   2C 2S 2B 5C   AC AS AB 6C   RC RS RB 7C   CC CS CB FC
"""


def mask(cards: str) -> np.uint64:
    """Return the set of the named cards."""
    return np.uint64(sum(int(bit(parse_card(card))) for card in cards.split()))


def names(cards: int) -> str:
    """Return the names of a set's cards, in deck order."""
    return " ".join(card_text(card) for card in range(40) if int(cards) >> card & 1)


def table(
    hands: Sequence[str], leader: int = 0, plays: str = "", gone: str = "", voids: str = "", signals: str = ""
) -> States:
    """Return the hands before `plays`, as an array of one state.

    `gone` are cards of earlier tricks; `voids` are seat and suit, like `3D`; `signals` are seat, suit and word, like
    `2D:busso`, and enable the option for signals.
    """
    game = SIGNALLING if signals else GAME
    states = np.full(1, game.blank, game.dtype)
    states[0]["hands"] = [mask(hand) for hand in hands]
    begin(states[0], leader)
    states[0]["played"][0] = mask(gone)
    for seat, suit in voids.split():
        states[0]["voids"] |= 1 << SUITS * int(seat) + SUIT_TEXT.index(suit)
    for (seat, suit), word in (said.split(":") for said in signals.split()):
        states[0]["signals"][int(seat), SUIT_TEXT.index(suit)] = WORDS[word]
    play(states, plays)
    return states


def play(states: States, cards: str) -> States:
    """Play the cards in order, in place, and return the states."""
    game = SIGNALLING if states[0]["with_signals"] else GAME
    for card in cards.split():
        game.apply(states, np.array([parse_card(card)], np.uint8))
    return states
