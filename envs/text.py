"""A game as lines of text, for render modes: what the seat to move may know, and at the end the result."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from blackjack.cards import TEN
from cards.game import Game
from spike.cards import NO_CARD as NO_SPIKE_CARD
from spike.cards import VALUES
from spike.state import BET, BUYING, EXCHANGE
from tressette.cards import CARDS, card_text
from tressette.rules import NO_CARD

_PHASES = {BET: "betting", BUYING: "buying", EXCHANGE: "a bought card"}
_RANKS = ("A", "2", "3", "4", "5", "6", "7", "8", "9", "10")


def as_text(game: Game, states: Any) -> str:
    """The game in `states[:1]`, several lines."""
    now = states[:1]
    lines = _TABLES[game.name](now[0])
    if game.over(now)[0]:
        results = " ".join(f"{result:g}" for result in game.returns(now)[0][game.taken(now)[0]])
        return "\n".join([*lines, f"over; {game.unit}: {results}"])
    mask = int(game.legal(now)[0])
    legal = ", ".join(f"{action} {game.action_text(action)}" for action in range(game.actions) if mask >> action & 1)
    return "\n".join([*lines, f"player_{now[0]['turn']} may play: {legal}"])


def rendered(game: Game, states: Any, mode: str | None) -> str | None:
    """What a render mode of Gymnasium and PettingZoo asks for: "ansi" is given the text, "human" has it printed."""
    if mode is None:
        return None
    text = as_text(game, states)
    if mode == "ansi":
        return text
    print(text, flush=True)
    return None


def _tressette(state: np.void) -> list[str]:
    seat = int(state["turn"])
    hand = " ".join(card_text(card) for card in range(CARDS) if int(state["hands"][seat]) >> card & 1)
    order = [(int(state["leader"]) + k) % 4 for k in range(4)]
    lying = [(other, int(state["trick"][other])) for other in order]
    trick = [f"player_{other} {card_text(card)}" for other, card in lying if card != NO_CARD]
    thirds = [f"{int(each) // 3} {int(each) % 3}/3" for each in state["thirds"]]
    return [
        f"Tressette, trick {min(int(state['plays']) // 4 + 1, 10)} of 10; points: players 0 and 2 {thirds[0]}, "
        f"players 1 and 3 {thirds[1]}",
        f"on the table: {', '.join(trick) or 'nothing'}",
        f"player_{seat} holds: {hand or 'nothing'}",
    ]


def _spike(state: np.void) -> list[str]:
    seat = int(state["turn"])
    hand = " ".join(f"{VALUES[card]:+d}" for card in state["hands"][seat])
    lines = [
        f"Corellian Spike, hand {int(state['hands_played']) + 1}, round {state['round']}, "
        f"{_PHASES.get(int(state['phase']), 'over')}; pool {state['pool']}"
    ]
    for other in range(int(state["players"])):
        spike = state["spikes"][other]
        shown = "" if spike == NO_SPIKE_CARD else f", spike card {VALUES[spike]:+d}"
        folded = "" if int(state["in_hand"]) >> other & 1 else ", folded"
        lines.append(f"player_{other}: {state['credits'][other]} credits{shown}{folded}")
    bought = "" if state["bought"] == NO_SPIKE_CARD else f", bought {VALUES[state['bought']]:+d}"
    return [*lines, f"player_{seat} holds: {hand}{bought}"]


def _blackjack(state: np.void) -> list[str]:
    soft = "soft " if state["soft"] else ""
    dealer = f"the dealer shows {_RANKS[min(int(state['open_rank']), TEN)]}"
    if state["ended"]:
        dealer = f"the dealer has {state['dealer_sum']}"
    return [f"Blackjack: player_0 has {soft}{state['sum']}, {dealer}"]


def _sette_mezzo(state: np.void) -> list[str]:
    return [f"Sette e mezzo: player_0 has {state['score'] / 2:g}, the opponent {state['opponent_score'] / 2:g}"]


_TABLES: Mapping[str, Callable[[np.void], list[str]]] = {
    "tressette": _tressette,
    "spike": _spike,
    "blackjack": _blackjack,
    "sette_mezzo": _sette_mezzo,
}
