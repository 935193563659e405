"""What the templates draw of each game: cards, places and buttons."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from busso.cards.hand import Hand, Move
from busso.play.language import Language
from busso.play.table.hints import Odds
from busso.play.table.speech import Speech
from busso.play.views import events, page, spike, tressette
from busso.sette_mezzo.rules import points_text
from busso.spike.cards import BUY, DISCARD, FOLD, MATCH, NO_BUY, RAISE, SWAP_HIGHER, SWAP_LOWER, SWAP_SPIKE, signed
from busso.tressette.cards import parse_card


class Viewpoint(Protocol):
    """Room that shows a board: its table, the seat that looks, and the coach's advice."""

    speech: Speech
    language: Language
    table: Any
    viewer: int
    odds: Sequence[Odds]

    def worth(self, action: int) -> dict[str, Any] | None:
        """Return the coach's value of an action, if it was asked for."""


ITALIAN, FRENCH, SPIKE = "italian", "french", "spike"
_SUITS = {ITALIAN: "DCSB", FRENCH: ("spade", "heart", "club", "diamond")}
_FACES = "FCRJQK"
_SEVEN = 7.5
# Where the pips of a card of 60 x 96 are, by their number.
_TWO, _FOUR = ((30, 28), (30, 72)), ((19, 27), (41, 27), (19, 73), (41, 73))
_SIX = (*_FOUR, (19, 50), (41, 50))
_NINE = tuple((x, y) for x in (19, 41) for y in (24, 41, 59, 76))
PIPS = {
    2: _TWO, 3: (*_TWO, (30, 50)), 4: _FOUR, 5: (*_FOUR, (30, 50)), 6: _SIX, 7: (*_SIX, (30, 38)),
    8: (*_SIX, (30, 38), (30, 62)), 9: (*_NINE, (30, 50)), 10: (*_NINE, (30, 32), (30, 68)),
}  # fmt: skip
# The keys of actions: as on the screens of the terminal.
LETTERS = {
    "blackjack": {0: "s", 1: "h"},
    "sette_mezzo": {0: "s", 1: "h"},
    "spike": {
        RAISE: "r", MATCH: "m", FOLD: "f", BUY: "b", NO_BUY: "x", DISCARD: "d",
        SWAP_SPIKE: "s", SWAP_LOWER: "l", SWAP_HIGHER: "h",
    },
}  # fmt: skip
_SPIKE_NAMES = {RAISE: "raise", FOLD: "fold", BUY: "buy", NO_BUY: "no_buy", DISCARD: "discard"}


def stays_longer(hand: Hand, move: Move) -> bool:
    """Return whether the outcome of a move should stay on the page for a while: a trick, or dice."""
    return any(told.key == "event.trick" or told.key.startswith("event.dice") for told in events(hand, move))


def card(language: Language, deck: str, text: str, place: int = 0) -> dict[str, Any]:
    """Return a card for the template. Cards without a suit get one by their `place`, since it does not matter."""
    if deck == SPIKE:
        number = int(text)
        sign = "zero" if number == 0 else "plus" if number > 0 else "minus"
        return {"deck": deck, "rank": signed(number), "suit": sign, "number": abs(number), "name": signed(number)}
    suited = deck == ITALIAN and len(text) > 1
    rank, suit = (text[0], text[1]) if suited else (text, _SUITS[deck][place % 4])
    name = language.texts[f"web.rank.{'french' if rank in 'JQK' else 'card'}.{rank}"]
    if suited:
        name = language.say("web.card", rank=name, suit=tressette.suit_name(suit))
    number = int(rank) if rank.isdecimal() else 1
    figure = rank if rank in _FACES else ""
    return {
        "deck": deck, "rank": rank, "suit": suit, "number": number, "name": name, "figure": figure,
        "pips": PIPS.get(number, ()) if not figure else (),
    }  # fmt: skip


def cards(language: Language, game: str, texts: Sequence[str], first: int = 0) -> list[dict[str, Any]]:
    """Return the cards of a game of ours; empty for other games and other texts."""
    deck = {"tressette": ITALIAN, "sette_mezzo": ITALIAN, "blackjack": FRENCH, "spike": SPIKE}.get(game)
    return [] if deck is None else [card(language, deck, text, place) for place, text in enumerate(texts, first)]


def board_of(room: Viewpoint, seen: Any, legal: Sequence[int]) -> dict[str, Any]:
    """Return the values that draw a view, with the `template` that draws it."""
    name = room.table.game.shown_as
    found = _BOARDS[name](room, seen, legal) if name in _BOARDS else _generic(room, seen)
    common = {
        "task": "",
        "last": None,
        "template": f"{name if name in _BOARDS else 'generic'}.html",
        "buttons": _buttons(room, seen, legal),
    }
    return common | {"odds": room.speech.odds(room.odds) if room.odds else []} | found


def _buttons(room: Viewpoint, seen: Any, legal: Sequence[int]) -> list[dict[str, Any]]:
    name = room.table.game.shown_as
    letters = LETTERS.get(name, {})
    return [
        {
            "action": action,
            "label": _spike_label(room, action) if name == "spike" else room.speech.action(action),
            "note": _spike_note(room, seen, action) if name == "spike" else "",
            "shortcut": " ".join(
                key for key in (str(number % 10) if number <= 10 else "", letters.get(action, "")) if key
            ),
            "worth": room.worth(action),
        }
        for number, action in enumerate(legal, start=1)
    ]


def _generic(room: Viewpoint, seen: Any) -> dict[str, Any]:
    rows = getattr(seen, "rows", None)
    if rows is None:
        return {"rows": [], "lines": list(page(room.language, room.table.game.shown_as, seen, details=True))}
    return {"rows": [(row.label, row.items, row.cards) for row in rows], "lines": []}


def _tressette(room: Viewpoint, seen: tressette.TressetteView, legal: Sequence[int]) -> dict[str, Any]:
    language, table = room.language, room.table
    trick = tressette.trick_of(seen, getattr(room, "last_trick", False))
    places = []
    for where, place in zip(("bottom", "right", "top", "left"), trick.places, strict=True):
        notes = [language.say("tressette_screen.partner")] if where == "top" else []
        notes += [language.say("tressette_screen.leads")] if place.leads else []
        if place.highest:
            notes.append(language.say("tressette_screen.takes" if trick.complete else "tressette_screen.highest"))
        places.append(
            {
                "where": where,
                "seat": place.seat,
                "name": room.speech.seat_name(place.seat, room.viewer),
                "card": None if place.card is None else card(language, ITALIAN, place.card),
                "highest": place.highest,
                "moves": place.seat == seen.turn,
                "notes": notes,
                "left": language.say("tressette_screen.cards", number=seen.cards_left[place.seat]),
                "facts": [language.render(fact) for fact in tressette.facts(seen, place.seat)],
            }
        )
    ours = seen.seat % 2
    hand = [
        {
            "card": card(language, ITALIAN, text),
            "action": (action := parse_card(text)),
            "barred": bool(legal) and action not in legal,
            "worth": room.worth(action),
        }
        for text in tressette.cards_of(seen)
    ]
    return {
        "buttons": [],
        "places": places,
        "trick": language.say(f"tressette_screen.{'last_trick' if trick.complete else 'trick'}", number=trick.number),
        "points": [(seen.points[team], seen.thirds[team]) for team in (ours, 1 - ours)],
        "match": None if table.match_score is None else [table.match_score[team] for team in (ours, 1 - ours)],
        "to": table.setup.match,
        "hand": hand,
        "task": language.render(tressette.task(seen)) if legal else "",
        "result": _tressette_result(room, seen, ours) if table.hand.over else [],
        "has_last": bool(seen.last_trick),
        "last": getattr(room, "last_trick", False),
    }  # fmt: skip


def _tressette_result(room: Viewpoint, seen: tressette.TressetteView, ours: int) -> list[str]:
    say, table = room.language.say, room.table
    mine, theirs = seen.points[ours], seen.points[1 - ours]
    lines = [say("tressette_screen.hand_over", ours=mine, theirs=theirs)]
    if table.match_score is None:
        return [*lines, say("tressette_screen.won" if mine > theirs else "tressette_screen.lost")]
    us, them = table.match_score[ours], table.match_score[1 - ours]
    key = "match_on" if not table.game_over else "match_won" if us > them else "match_lost"
    return [*lines, say(f"tressette_screen.{key}", to=table.setup.match, ours=us, theirs=them)]


def _small(room: Viewpoint, seen: Any, legal: Sequence[int]) -> dict[str, Any]:
    language, game, score = room.language, room.table.game.shown_as, room.table.score
    say, note = language.say, ""
    if game == "blackjack":
        over = seen.other_counts is not None
        other = say(
            "blackjack_screen.dealer_open" if over else "blackjack_screen.dealer",
            counts=seen.other_counts,
            rule=seen.rule,
        )
        own = say("blackjack_screen.player_soft" if seen.soft else "blackjack_screen.player", counts=seen.counts)
    else:
        counts = seen.other_counts or points_text(int(room.table.hand.state[0]["opponent_score"]))
        own, other = (
            say(f"sette_screen.{whose}{'_over' if float(each) > _SEVEN else ''}", counts=each)
            for whose, each in (("you", seen.counts), ("opponent", counts))
        )
        note = "" if seen.outcome else say("sette_screen.rule", counts=counts, rule=seen.rule)
    lost = score.games - score.wins[0] - score.ties if score.wins else 0
    counted = {"games": score.games, "won": score.wins[0], "tied": score.ties, "lost": lost} if score.wins else None
    return {
        "other": other,
        "own": own,
        "other_cards": cards(language, game, seen.other),
        "hidden": game == "blackjack" and seen.outcome is None,
        "own_cards": cards(language, game, seen.cards, 2),
        "outcome": "" if seen.outcome is None else say(f"result.{seen.outcome}"),
        "won": seen.outcome,
        "note": note,
        "counted": "" if counted is None else say("sette_screen.games", **counted),
    }


def _spike(room: Viewpoint, seen: spike.SpikeView, legal: Sequence[int]) -> dict[str, Any]:
    language = room.language
    names = [room.speech.seat_name(seat, room.viewer) for seat in range(len(room.table.setup.seats))]
    end: spike.Ending | None = getattr(room, "end", None)
    return _spike_end(language, end, names) if end is not None else _spike_table(language, seen, names)


def _spike_table(language: Language, seen: spike.SpikeView, names: list[str]) -> dict[str, Any]:
    def say(key: str, **values: object) -> str:
        return language.say(f"spike_screen.{key}", **values)

    def of(value: int) -> dict[str, Any]:
        return card(language, SPIKE, str(value))

    done, seats = spike.last_done(seen.log), []
    for seat, other in enumerate(seen.seats):
        turn = seat == seen.turn
        state = "turn" if turn else "folded" if not other.in_hand else "in" if other.credits else "all_in"
        name, told = done.get(seat, ("", None))
        seats.append(
            {
                "seat": seat,
                "name": names[seat],
                "credits": other.credits,
                "card": None if other.spike is None else of(other.spike),
                "state": state,
                "text": say(f"state.{state}"),
                "did": say(f"did.{name}", **told.values) if told is not None else "",
                "you": seat == seen.seat,
            }
        )
    own, numbered = seen.seats[seen.seat].spike, say("round.numbered", number=seen.round)
    rolled = [{"one": one, "other": other, "equal": one == other} for one, other in seen.dice]
    return {
        "end": None,
        "standing": say(
            "standing", hand=seen.hand_number, hands=seen.hands, phase=say(f"phase.{seen.phase}"),
            round=numbered if seen.round else say("round.before"),
        ),
        "pots": say(
            "pots_second" if seen.second_pot else "pots", second=seen.second_pot, pool=seen.pool, match=seen.to_match,
            bet=seen.bet, raises=seen.raises,
        ),
        "discards": say("discards" if seen.discards else "no_discards", cards=spike.counted(seen.discards)),
        "dice": rolled,
        "seats": seats,
        "own": [of(value) for value in seen.own],
        "spike": None if own is None else of(own),
        "bought": None if seen.bought is None else of(seen.bought),
        "sum": signed(seen.sum),
    }  # fmt: skip


def _spike_end(language: Language, end: spike.Ending, names: list[str]) -> dict[str, Any]:
    def say(key: str, **values: object) -> str:
        return language.say(f"spike_screen.{key}", **values)

    seats = [
        {
            "seat": seat,
            "name": names[seat],
            "credits": hand.credits,
            "cards": [card(language, SPIKE, str(value)) for value in hand.cards],
            "sum": signed(sum(hand.cards)) if hand.cards else "",
            "won": seat == end.winner,
            "note": say("wins", won=end.won) if seat == end.winner else "" if hand.cards else say("state.folded"),
        }
        for seat, hand in enumerate(end.seats)
    ]
    return {
        "end": say("ended", hand=end.number, winner=f"{end.winner} {names[end.winner]}", won=end.won),
        "why": say("all_folded") if end.rule is None else say("rule", rule=end.rule),
        "dice": [{"one": one, "other": other, "equal": one == other} for one, other in end.dice],
        "seats": seats,
    }


def _spike_label(room: Viewpoint, action: int) -> str:
    language, letter = room.language, LETTERS["spike"][action]
    if action == MATCH:
        key = "match" if spike.costs(room.table.hand).get(action) else "check"
    elif action in _SPIKE_NAMES:
        key = _SPIKE_NAMES[action]
    else:
        return room.speech.action(action)
    return language.say(f"spike_screen.{key}", letter=letter).removesuffix(f" ({letter})")


def _spike_note(room: Viewpoint, seen: spike.SpikeView, action: int) -> str:
    language, price = room.language, spike.costs(room.table.hand).get(action)
    total = spike.sums_after(seen).get(action)
    if total is not None:
        return language.say("spike_screen.gives", sum=signed(total))
    return language.say(f"spike_screen.{'out' if action == FOLD else 'costs' if price else 'free'}", credits=price)


_BOARDS = {"tressette": _tressette, "blackjack": _small, "sette_mezzo": _small, "spike": _spike}
