"""The decisions of Corellian Spike as the numbered states of the published study.

A state is written with eight digits, `RDSSXXCP`: round 0 to 3; decision 1 betting, 2 buying, 3 exchange; the sum of
the seat's cards, capped at -9 and 9, plus 10; the bought card plus 10, or 00 when there is none; the seat's credits
and the pool, each divided by 10, rounded half to even and capped at 9. In round 0 there is only decision 1 without a
bought card. With n players the digits of credits and pool add up to at most 5 n. A bought -10 and no bought card are
written alike, as they were published: the decision tells them apart.
"""

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from busso.cards.base.errors import InputError
from busso.cards.compiled.jit import njit
from busso.cards.tabular.numbering import Numbering
from busso.spike.cards import DISCARD, FACES, MATCH, NO_BUY, NO_CARD, VALUES
from busso.spike.showdown import card_sum
from busso.spike.state import MAX_SEATS, ROUNDS, Options

SUMS, LEVELS, DECISIONS = 19, 10, 3
_FIRST_BLOCK = SUMS * LEVELS * LEVELS
_BLOCK = SUMS * FACES * LEVELS * LEVELS
TERMINAL = _FIRST_BLOCK + ROUNDS * DECISIONS * _BLOCK
STATES = TERMINAL + 1
PUBLISHED_CREDITS = 50
_TERMINAL_TEXT = "00000000"


@njit
def level(credits: int) -> int:
    """The digit for an amount of credits: credits / 10, rounded half to even, at most 9."""
    whole, rest = credits // 10, credits % 10
    if rest > 5 or (rest == 5 and whole % 2 == 1):
        whole += 1
    return min(whole, 9)


@njit
def number(state: Any) -> int:
    """The number of the decision of the seat to move."""
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
    """Return the number of earlier hands: a hand is an episode of the study."""
    return state.hands_played


def digits(number: int) -> tuple[int, int, int, int, int, int]:
    """Round, decision, sum + 10, bought card + 10, credits and pool digit of a number below TERMINAL."""
    rest, pool = divmod(number, LEVELS)
    rest, held = divmod(rest, LEVELS)
    if rest < SUMS:
        return 0, 1, rest + 1, 0, held, pool
    rest, extra = divmod(rest - SUMS, FACES)
    block, total = divmod(rest, SUMS)
    return block // DECISIONS + 1, block % DECISIONS + 1, total + 1, extra, held, pool


def text(number: int) -> str:
    """The eight digits of a state; 00000000 for the terminal one."""
    if number == TERMINAL:
        return _TERMINAL_TEXT
    place, levels = divmod(number, LEVELS * LEVELS)
    return f"{_first_six(place)}{levels:02d}"


@cache
def _first_six(place: int) -> str:
    """All digits but those of credits and pool, which a table of all states asks for a hundred times each."""
    round_, decision, total, extra, _, _ = digits(place * LEVELS * LEVELS)
    return f"{round_}{decision}{total:02d}{extra:02d}"


def parse(written: str) -> int:
    """The number of a state other than the terminal one. Raises ValueError naming a text that is none."""
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
    """All states of a game of `players` players, the terminal one last: 231,041 for 2 and 361,001 for 4."""
    numbers = np.arange(TERMINAL)
    both = numbers % LEVELS + numbers // LEVELS % LEVELS
    return np.append(numbers[both <= 5 * players], TERMINAL)


@cache
def _by_decision() -> tuple[NDArray[np.uint64], NDArray[np.uint8]]:
    """Legal actions and the initial policy (match, do not buy, discard) of every state."""
    decision = np.zeros(STATES, np.int64)
    later = np.arange(TERMINAL - _FIRST_BLOCK)
    decision[_FIRST_BLOCK:TERMINAL] = later // _BLOCK % DECISIONS
    legal = np.array([0b111, 0b11000, 0b111100000], np.uint64)[decision]
    legal[TERMINAL] = 0
    return legal, np.array([MATCH, NO_BUY, DISCARD], np.uint8)[decision]


@cache
def _listings() -> tuple[NDArray[np.int64], ...]:
    lists = [enumerate_states(players) for players in range(2, MAX_SEATS + 1)]
    # From four players on the digits cannot add up to more than the limit.
    return tuple(one for k, one in enumerate(lists) if k == 0 or one.size > lists[k - 1].size)


def numbering(options: Options) -> Numbering:
    """The states of the study for games under these options; see `busso.cards.tables.Numbering`.

    Raises ValueError for options under which the legal actions do not follow from the state.
    """
    if options.raise_cap is not None:
        raise InputError(
            "game.raise_cap", "the state numbers do not contain the number of raises", "leave it null for tables"
        )
    legal, initial = _by_decision()
    # As many credits as this many players of the study have.
    players = -(-options.seats * options.credits // PUBLISHED_CREDITS)
    listed = enumerate_states(min(max(players, 2), MAX_SEATS))
    return Numbering(number, episode, TERMINAL, legal, initial, text, parse, listed, _listings())
