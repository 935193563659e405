"""Presentation and judging of Tressette (see `busso.cards.presentation`)."""

from collections.abc import Iterator
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from busso.cards.game import States
from busso.cards.hand import Hand
from busso.cards.presentation import Judging, Presentation, Row
from busso.tressette.cards import SUIT_NAMES, by_suit, card_text
from busso.tressette.rules import POINTS, SEATS, TRICKS, WIN, known_voids, latest_signals, latest_tricks
from busso.tressette.search import endgame


def _rows(hand: Hand, seat: int) -> Iterator[Row]:
    state = hand.state[0]
    plays, us = int(state["plays"]), seat & 1
    both = " to ".join(_points(int(state["thirds"][team])) for team in (us, 1 - us))
    yield Row("trick", (f"{min(plays // SEATS + 1, TRICKS)} of {TRICKS}, own team {both} points",))
    yield Row("hand", tuple(chain(*by_suit(int(state["hands"][seat])))), cards=True)
    before, table = (
        tuple(f"{_who(other, seat)} {card_text(card)}" for other, card in trick) for trick in latest_tricks(state)
    )
    yield Row("table", table or ("nothing" if hand.over else "you lead",))
    if before:
        yield Row("trick before", (*before, f"taken by {_who(int(state['last_taker']), seat)}"))
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


def _trick(states: States) -> NDArray[np.int64]:
    number: NDArray[np.int64] = states["plays"].astype(np.int64) // SEATS
    return number


PRESENTATION = Presentation(
    rows=_rows,
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
