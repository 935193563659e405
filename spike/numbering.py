"""Decisions of Corellian Spike as the numbered states of the published study.

A state is written as eight digits, `RDSSXXCP`: round 0 to 3; decision 1 betting, 2 buying, 3 exchange; the sum of the
seat's cards, capped at -9 and 9, plus 10; the bought card plus 10, or 00 without one; the seat's credits and the pool,
each divided by 10, rounded half to even and capped at 9. Round 0 has only decision 1, without a bought card. With n
players the digits of credits and pool sum to at most 5 n. As in the study, a bought -10 and no bought card are written
alike; the decision distinguishes them.
"""

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from busso.base.errors import InputError
from busso.cards.compiled.jit import njit
from busso.cards.mdp import Numbering
from busso.spike.cards import DISCARD, FACES, MATCH, NO_BUY, NO_CARD, VALUES, card_sum
from busso.spike.state import MAX_SEATS, ROUNDS, Options

SUMS, LEVELS, DECISIONS = 19, 10, 3
_FIRST_BLOCK = SUMS * LEVELS * LEVELS
_BLOCK = SUMS * FACES * LEVELS * LEVELS
TERMINAL = _FIRST_BLOCK + ROUNDS * DECISIONS * _BLOCK
STATES = TERMINAL + 1
PUBLISHED_CREDITS = 50


@njit
def level(credits: int) -> int:
    """Return the digit of an amount of credits: credits / 10, rounded half to even, at most 9."""
    whole, rest = credits // 10, credits % 10
    if rest > 5 or (rest == 5 and whole % 2 == 1):
        whole += 1
    return min(whole, 9)


@njit
def number(state: Any) -> int:
    """Return the number of the mover's decision state."""
    seat = state.turn
    total = min(max(card_sum(state, seat), -9), 9) + 9
    extra = 0
    if state.bought != NO_CARD:
        extra = int(VALUES[state.bought]) + 10
    block = 0 if state.round == 0 else _FIRST_BLOCK + (DECISIONS * (state.round - 1) + state.phase) * _BLOCK
    faces = 1 if state.round == 0 else FACES
    place = total * faces + extra
    return block + (place * LEVELS + level(state.credits[seat])) * LEVELS + level(state.pool)


@njit
def episode(state: Any) -> int:
    """Return the number of earlier hands: in the study, a hand is an episode."""
    return state.hands_played


def text(number: int) -> str:
    """Return the eight digits of a state; 00000000 for the terminal one."""
    if number == TERMINAL:
        return "00000000"
    place, levels = divmod(number, LEVELS * LEVELS)
    return f"{_first_six(place)}{levels:02d}"


@cache
def _first_six(place: int) -> str:
    """Return all digits except credits and pool; cached, since a full table needs each a hundred times."""
    if place < SUMS:
        return f"01{place + 1:02d}00"
    rest, extra = divmod(place - SUMS, FACES)
    block, total = divmod(rest, SUMS)
    return f"{block // DECISIONS + 1}{block % DECISIONS + 1}{total + 1:02d}{extra:02d}"


def parse(written: str) -> int:
    """Return the number of a non-terminal state. Raises ValueError for a text that is not a state."""
    if len(written) != 8 or not written.isdecimal() or not written.isascii():
        raise InputError(f"state {written!r}", "not eight digits")
    round_, decision, total, extra = int(written[0]), int(written[1]), int(written[2:4]), int(written[4:6])
    first = round_ == 0 and decision == 1 and extra == 0
    later = 1 <= round_ <= ROUNDS and 1 <= decision <= DECISIONS and extra < FACES
    if not (first or later) or not 1 <= total <= SUMS:
        raise InputError(f"state {written}", "unknown round, decision, sum or card")
    place = total - 1
    if later:
        place = SUMS + ((DECISIONS * (round_ - 1) + decision - 1) * SUMS + total - 1) * FACES + extra
    return place * LEVELS * LEVELS + int(written[6:])


def enumerate_states(players: int) -> NDArray[np.int64]:
    """Return all states of a game of `players` players, terminal last: 231,041 for 2 players and 361,001 for 4."""
    numbers = np.arange(TERMINAL)
    both = numbers % LEVELS + numbers // LEVELS % LEVELS
    return np.append(numbers[both <= 5 * players], TERMINAL)


@cache
def _by_decision() -> tuple[NDArray[np.uint64], NDArray[np.uint8]]:
    """Return the legal actions and the initial policy (match, do not buy, discard) of every state."""
    decision = np.zeros(STATES, np.int64)
    later = np.arange(TERMINAL - _FIRST_BLOCK)
    decision[_FIRST_BLOCK:TERMINAL] = later // _BLOCK % DECISIONS
    legal = np.array([0b111, 0b11000, 0b111100000], np.uint64)[decision]
    legal[TERMINAL] = 0
    return legal, np.array([MATCH, NO_BUY, DISCARD], np.uint8)[decision]


@cache
def _listings() -> tuple[NDArray[np.int64], ...]:
    lists = [enumerate_states(players) for players in range(2, MAX_SEATS + 1)]
    # From four players on the digits never exceed the limit.
    return tuple(one for k, one in enumerate(lists) if k == 0 or one.size > lists[k - 1].size)


def numbering(options: Options) -> Numbering:
    """Return the study's states under these options. Raises ValueError if legal actions would not follow from them."""
    if options.raise_cap is not None:
        raise InputError(
            "game.raise_cap", "the state numbers do not contain the number of raises", "leave it null for tables"
        )
    legal, initial = _by_decision()
    # The number of players who have as many credits in the study.
    players = -(-options.seats * options.credits // PUBLISHED_CREDITS)
    listed = enumerate_states(min(max(players, 2), MAX_SEATS))
    return Numbering(number, episode, TERMINAL, legal, initial, text, parse, listed, _listings())
