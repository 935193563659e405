"""Presentation and judging of Corellian Spike (see `busso.cards.presentation`)."""

from collections.abc import Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from busso.cards.game import Game, States
from busso.cards.hand import Hand
from busso.cards.presentation import Judging, Presentation, Row
from busso.spike.cards import VALUES, card_sum, signed, value_of
from busso.spike.rules import owed
from busso.spike.search import showdown_odds
from busso.spike.state import BET, BUYING, EXCHANGE, ROUNDS, discarded, public_seat, rolls

_SAMPLES_OF_ODDS = 2000
_PHASES = {BET: "betting", BUYING: "buying", EXCHANGE: "exchange"}


def _rows(hand: Hand, seat: int) -> Iterator[Row]:
    state = hand.state[0]
    phase = _PHASES.get(int(state["phase"]), "over")
    cost = owed(state, seat)
    told = [f"round {state['round']} of {ROUNDS}, {phase}", f"pool {state['pool']}"]
    yield Row("table", (*told, f"{cost} to match" if cost else "nothing to match"))
    own = [signed(int(VALUES[card])) for card in state["hands"][seat]]
    own += [f"{text} (spike)" for text in _shown(state["spikes"][seat])]
    if hand.turn == seat:
        own += [f"{text} (bought)" for text in _shown(state["bought"])]
    yield Row("own cards", tuple(own), cards=True)
    yield Row("sum", (signed(int(card_sum(state, seat))),))
    yield Row("seats", tuple(_seat(state, other, seat) for other in range(int(state["players"]))))
    if values := discarded(state):
        yield Row("discards", tuple(map(signed, values)), cards=True)
    if rolled := rolls(state):
        yield Row("dice", tuple(f"{a} and {b}" for a, b in rolled))


def _seat(state: np.void, other: int, seat: int) -> str:
    seen = public_seat(state, other)
    spike = "" if seen.spike is None else f", spike {signed(seen.spike)}"
    folded = "" if seen.in_hand else ", folded"
    return f"{'you' if other == seat else f'seat {other}'}: {seen.credits} credits{spike}{folded}"


def _shown(card: int) -> list[str]:
    value = value_of(card)
    return [] if value is None else [signed(value)]


def _short(action: str) -> str:
    return action.replace("swap with the ", "swap ").removesuffix(" hand card").removesuffix(" card")


def _phase(states: States) -> NDArray[np.int64]:
    number: NDArray[np.int64] = states["round"].astype(np.int64) * len(_PHASES) + states["phase"]
    return number


def _units(game: Game) -> Mapping[str, tuple[str, float]]:
    return {"stack": ("credits", float(game.blank["start_credits"])), "credits": ("credits", 1.0)}


PRESENTATION = Presentation(
    rows=_rows,
    short=_short,
    phases=tuple(f"round {k}, {phase}" for k in range(ROUNDS + 1) for phase in _PHASES.values()),
    phase=_phase,
    judging=Judging(
        graders=("search:champion", "monte_carlo:samples:2000"),
        coaches=("monte_carlo:samples:1000",),
        # Over all hands to come, not only the current one.
        units=lambda game: (
            {reward: (*unit, 0.0) for reward, unit in _units(game).items()} | {"win": ("wins", 1.0, 0.0)}
        ),
        unrecorded=("credits", "hands", "rotate"),
        odds=lambda state, generator: {"showdown": showdown_odds(state, _SAMPLES_OF_ODDS, generator)},
    ),
    units=_units,
    offered={
        "seats": (2, 3, 4, 5, 6, 7, 8),
        "min_seats": (None, 2, 3, 4, 5, 6, 7),
        "credits": (20, 50, 100, 200),
        "ante": (0, 2, 4, 6),
        "bet": (2, 4, 6, 10),
        "hands": (1, 3, 5, 10, 20),
        "raise_cap": (None, 1, 2, 3),
    },
)
