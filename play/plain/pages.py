"""What a person sees of each game, in lines of text without colour."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from play.language import Language
from play.views.generic import GenericView
from play.views.small import SmallView

_SUITS = "DCSB"


def page(language: Language, game: str, seen: Any, details: bool) -> list[str]:
    """A view of this game in lines; with `details` also what was said and shown before, where there is more of it."""
    if isinstance(seen, GenericView):
        return list(_generic(language, game, seen))
    if isinstance(seen, SmallView):
        return list(_small(language, game, seen))
    if game == "spike":
        return list(_spike(language, seen))
    return [*(_said_and_shown(language, seen) if details else ()), *_tressette(language, seen)]


def actions_text(language: Language, game: str, legal: tuple[str, ...]) -> str:
    """The legal actions as a person would type them."""
    names = [language.action(game, text) for text in legal]
    return " ".join(names) if game == "tressette" else ", ".join(names)


def _generic(language: Language, game: str, seen: GenericView) -> Iterator[str]:
    yield language.say("page.observation", bits=seen.observation)
    if seen.legal:
        yield language.say("page.legal", actions=actions_text(language, game, seen.legal))


def _small(language: Language, game: str, seen: SmallView) -> Iterator[str]:
    key = "page.your_cards_soft" if seen.soft else "page.your_cards"
    yield language.say(key, cards=" ".join(seen.cards), counts=seen.counts)
    yield language.say(f"page.{game}.other", cards=" ".join(seen.other), rule=seen.rule)
    if seen.legal:
        yield language.say("page.legal", actions=actions_text(language, game, seen.legal))


def _tressette(language: Language, seen: Any) -> Iterator[str]:
    ours = seen.seat % 2
    yield language.say(
        "page.points",
        ours=seen.points[ours],
        theirs=seen.points[1 - ours],
        our_thirds=seen.thirds[ours],
        their_thirds=seen.thirds[1 - ours],
    )
    if seen.trick:
        cards = ", ".join(language.say("page.played", seat=seat, card=card) for seat, card in seen.trick)
        yield language.say("page.table", cards=cards)
    else:
        yield language.say("page.table_empty")
    hand = "  ".join(" ".join(cards) for cards in seen.hand if cards)
    yield language.say("page.hand", cards=hand)
    if seen.legal:
        yield language.say("page.legal", actions=actions_text(language, "tressette", seen.legal))


def _said_and_shown(language: Language, seen: Any) -> Iterator[str]:
    """The last trick, signals, accusi, and who is known to have none of which suit."""
    if seen.last_trick:
        cards = ", ".join(language.say("page.played", seat=seat, card=card) for seat, card in seen.last_trick)
        yield language.say("page.last_trick", cards=cards, seat=seen.last_taker)
    for seat, suit, signal in seen.signals:
        yield language.say("page.signal", seat=seat, suit=suit, signal=signal)
    for seat, declared in enumerate(seen.accusi):
        if declared:
            yield language.say("event.declares", seat=seat, accusi=declared)
    for seat, suits in enumerate(seen.voids):
        if suits and seat != seen.seat:
            yield language.say("page.voids", seat=seat, suits=" ".join(suits))


def _spike(language: Language, seen: Any) -> Iterator[str]:
    yield language.say(
        "page.spike.hand",
        hand=seen.hand_number,
        hands=seen.hands,
        round=seen.round,
        pool=seen.pool,
        discards=" ".join(f"{value:+d}" for value in seen.discards) or "-",
    )
    if seen.second_pot:
        yield language.say("page.spike.second_pot", credits=seen.second_pot)
    for seat, other in enumerate(seen.seats):
        shown = "-" if other.spike is None else f"{other.spike:+d}"
        key = "page.spike.seat" if other.in_hand else "page.spike.folded"
        yield language.say(key, seat=seat, credits=other.credits, spike=shown)
    own = " ".join(f"{value:+d}" for value in seen.own)
    yield language.say("page.spike.own", cards=own, sum=f"{seen.sum:+d}")
    if seen.bought is not None:
        yield language.say("page.spike.bought", card=f"{seen.bought:+d}")
    if seen.to_match:
        yield language.say("page.spike.to_match", credits=seen.to_match)
    if seen.legal:
        yield language.say("page.legal", actions=actions_text(language, "spike", seen.legal))
