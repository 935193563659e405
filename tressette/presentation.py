"""Presentation and judging of Tressette (see `busso.cards.presentation`)."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from busso.cards.game import Game, States
from busso.cards.hand import Hand
from busso.cards.presentation import Judging, Presentation, Row
from busso.tressette.cards import RANKS, SUIT_NAMES, SUITS, card_text
from busso.tressette.rules import POINTS, SEATS, TRICKS, WIN, known_voids, latest_signals, played_cards
from busso.tressette.search import endgame


def _rows(hand: Hand, seat: int) -> Iterator[Row]:
    state = hand.state[0]
    plays, us = int(state["plays"]), seat & 1
    both = " to ".join(_points(int(state["thirds"][team])) for team in (us, 1 - us))
    yield Row("trick", (f"{min(plays // SEATS + 1, TRICKS)} of {TRICKS}, own team {both} points",))
    yield Row("hand", _cards(int(state["hands"][seat])), cards=True)
    played = played_cards(state)

    def shown(first: int, last: int) -> tuple[str, ...]:
        return tuple(f"{_who(other, seat)} {card_text(card)}" for other, card in played[first:last])

    begun = plays - plays % SEATS
    yield Row("table", shown(begun, plays) or ("nothing" if hand.over else "you lead",))
    if begun:
        taker = _who(int(state["last_taker"]), seat)
        yield Row("trick before", (*shown(begun - SEATS, begun), f"taken by {taker}"))
    if known := tuple(_known(state, seat)):
        yield Row("known", known)


def _known(state: np.void, seat: int) -> Iterator[str]:
    """Describe public knowledge of the other hands: voids and signals."""
    for other, suit in known_voids(state):
        if other != seat:
            yield f"{_who(other, seat)} has no {SUIT_NAMES[suit]}"
    for other, suit, word in latest_signals(state):
        if other != seat:
            yield f"{_who(other, seat)} said {word} in {SUIT_NAMES[suit]}"


def _who(other: int, seat: int) -> str:
    return f"{('you', 'next', 'partner', 'previous')[other - seat & 3]} ({other})"


def _points(thirds: int) -> str:
    whole, rest = divmod(thirds, 3)
    return f"{whole}{('', '⅓', '⅔')[rest]}" if whole or not rest else ("", "⅓", "⅔")[rest]


def _cards(cards: int) -> tuple[str, ...]:
    strongest_first = (RANKS * suit + rank for suit in range(SUITS) for rank in range(RANKS - 1, -1, -1))
    return tuple(card_text(card) for card in strongest_first if cards >> card & 1)


def _situation(game: Game, state: np.void, seat: int) -> str:
    plays, leader = int(state["plays"]), int(state["leader"])
    lying = [int(state["trick"][(leader + k) % SEATS]) for k in range(plays % SEATS)]
    return f"trick {min(plays // SEATS + 1, TRICKS)}: {' '.join(map(card_text, lying)) or 'leads'}"


def _trick(states: States) -> NDArray[np.int64]:
    number: NDArray[np.int64] = states["plays"].astype(np.int64) // SEATS
    return number


PRESENTATION = Presentation(
    rows=_rows,
    situation=_situation,
    played="a hand",
    phases=tuple(f"trick {k + 1}" for k in range(TRICKS)),
    phase=_trick,
    judging=Judging(
        graders=("search:champion:samples:256", "monte_carlo:samples:1000"),
        coaches=("search:champion", "monte_carlo:samples:400"),
        solvers={
            "exact": (endgame.ExactOptions, endgame.EndgameAdviser),
            "cheating": (endgame.CheatingOptions, endgame.Cheating),
        },
        refined=endgame.refined,
        # Converts a difference over 11 to points of the own team.
        units=lambda game: {
            "points": ("points", POINTS / 2, POINTS / 2),
            "win": ("wins", 1.0, 0.0),
            "points_and_win": (f"points and {WIN} for the win", POINTS / 2, (POINTS + WIN) / 2),
        },
    ),
    units=lambda game: {
        "points": ("points of difference between the teams", float(POINTS)),
        "win": ("wins minus losses", 1.0),
        "points_and_win": (f"points of difference, {WIN} more for the winner", float(POINTS)),
    },
)
