"""Cards and buttons for the templates of the boards."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from busso.cards.hand import Hand
from busso.evaluate.review.advisers import Evaluation
from busso.evaluate.review.drawing import graph, rounds
from busso.play.language import Language
from busso.play.table.hints import is_mistake
from busso.play.table.speech import Speech
from busso.play.views import letters, page, position, spike, tressette
from busso.sette_mezzo.rules import points_text
from busso.spike.cards import BUY, DISCARD, FOLD, MATCH, NO_BUY, RAISE, signed
from busso.tressette.cards import parse_card

BOARDS = ("tressette", "spike", "blackjack", "sette_mezzo")  # with templates; other games are shown as rows
_SUITS = {"italian": "DCSB", "french": ("spade", "heart", "club", "diamond")}
# Where the pips of a card of 60 x 96 are, by their number.
_TWO, _FOUR = ((30, 28), (30, 72)), ((19, 27), (41, 27), (19, 73), (41, 73))
_SIX = (*_FOUR, (19, 50), (41, 50))
_NINE = tuple((x, y) for x in (19, 41) for y in (24, 41, 59, 76))
_PIPS = {
    2: _TWO, 3: (*_TWO, (30, 50)), 4: _FOUR, 5: (*_FOUR, (30, 50)), 6: _SIX, 7: (*_SIX, (30, 38)),
    8: (*_SIX, (30, 38), (30, 62)), 9: (*_NINE, (30, 50)), 10: (*_NINE, (30, 32), (30, 68)),
}  # fmt: skip
_NAMES = {RAISE: "raise", MATCH: "match", FOLD: "fold", BUY: "buy", NO_BUY: "no_buy", DISCARD: "discard"}


def card(language: Language, deck: str, text: str | int, place: int = 0) -> dict[str, Any]:
    """Return a card for the template. Cards without a suit get one by their `place`, since it does not matter."""
    if deck == "spike":
        number, name = int(text), signed(int(text))
        sign = "zero" if number == 0 else "plus" if number > 0 else "minus"
        return {"deck": deck, "rank": name, "suit": sign, "number": abs(number), "name": name}
    text = str(text)
    suited = deck == "italian" and len(text) > 1
    rank, suit = (text[0], text[1]) if suited else (text, _SUITS[deck][place % 4])
    name = language.texts[f"web.rank.{'french' if rank in 'JQK' else 'card'}.{rank}"]
    if suited:
        name = language.say("web.card", rank=name, suit=tressette.suit_name(suit))
    pips = _PIPS.get(int(rank), ()) if rank.isdecimal() else ()
    figure = "" if rank.isdecimal() or rank == "A" else rank
    return {"deck": deck, "rank": rank, "suit": suit, "name": name, "figure": figure, "pips": pips}


def buttons(speech: Speech, seen: Any, legal: Sequence[int]) -> list[dict[str, Any]]:
    """Return a button for each action that is no card, with its keys."""
    hand, name = speech.table.hand, speech.table.game.shown_as
    keys_of = letters(name)
    found = []
    for number, action in enumerate(() if name == "tressette" else legal, start=1):
        keys = [str(number % 10)] if number <= 10 else []
        label, note = _spike_button(speech, seen, action) if name == "spike" else (speech.action(action), "")
        keys += [keys_of[action]] if action in keys_of else []
        found.append({"action": action, "label": label, "note": note, "shortcut": " ".join(keys)})
    return found if not hand.over else []


def _spike_button(speech: Speech, seen: spike.SpikeView, action: int) -> tuple[str, str]:
    """Return the name of an action and its cost or outcome."""
    say, price, total = (
        speech.language.say,
        spike.costs(speech.table.hand).get(action),
        spike.sums_after(seen).get(action),
    )
    label = speech.action(action)
    if action in _NAMES:
        key = "check" if action == MATCH and not price else _NAMES[action]
        label = say(f"spike_screen.{key}", letter="").removesuffix(" ()")
    if total is not None:
        return label, say("spike_screen.gives", sum=signed(total))
    return label, say(f"spike_screen.{'out' if action == FOLD else 'costs' if price else 'free'}", credits=price)


def drawn_rounds(speech: Speech, hand: Hand, judged: Sequence[Evaluation]) -> Iterator[list[dict[str, Any]]]:
    """Yield the moves of each round of a reviewed hand, with their cards in Tressette, where one takes the trick."""
    verdicts = {each.number: each for each in judged}
    suited = hand.game.shown_as == "tressette"
    for played in rounds(hand):
        texts = [hand.game.action_text(move.action) for _, move in played]
        taker = (
            tressette.highest([(move.seat, text) for (_, move), text in zip(played, texts, strict=True)])
            if suited
            else None
        )
        yield [
            {
                "seat": move.seat,
                "judged": verdicts.get(number),
                "card": card(speech.language, "italian", text) if suited else None,
                "text": speech.action(move.action),
                "takes": move.seat == taker,
            }
            for (number, move), text in zip(played, texts, strict=True)
        ]


HELPERS = {
    "BOARDS": BOARDS, "tressette": tressette, "spike": spike, "card": card, "parse_card": parse_card, "signed": signed,
    "points_text": points_text, "page": page, "drawn_rounds": drawn_rounds, "graph": graph, "is_mistake": is_mistake,
    "position": position,
}  # fmt: skip
