"""What lies face down, for those who look on with all hands open."""

from __future__ import annotations

from cards.hand import Hand
from play.language import Message, message


def open_hands(hand: Hand) -> list[Message]:
    """The cards of every seat now, a message for each; none where nothing is hidden, or the game is not known here."""
    shown = {"tressette": _tressette, "spike": _spike, "blackjack": _blackjack}.get(hand.game.name)
    return shown(hand) if shown is not None else []


def _tressette(hand: Hand) -> list[Message]:
    from play.views.tressette import by_suit

    held = [by_suit(int(cards)) for cards in hand.state[0]["hands"]]
    return [_seat(seat, [card for suit in suits for card in suit]) for seat, suits in enumerate(held)]


def _spike(hand: Hand) -> list[Message]:
    from spike.cards import VALUES

    state = hand.state[0]
    players = range(int(state["players"]))
    playing = [seat for seat in players if int(state["in_hand"]) >> seat & 1]
    return [_seat(seat, [f"{int(VALUES[card]):+d}" for card in state["hands"][seat]]) for seat in playing]


def _blackjack(hand: Hand) -> list[Message]:
    cards = hand.record()["dealer"]
    return [message("watch.hole", cards=" ".join(cards if hand.over else cards[:2]))]


def _seat(seat: int, cards: list[str]) -> Message:
    return message("watch.seat", seat=seat, cards=" ".join(cards) or "-")
