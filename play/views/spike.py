"""Corellian Spike as a seat sees it: cards, costs, sums, ends of hands, the log."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from busso.cards.game import Game, States
from busso.cards.hand import Hand, Move
from busso.play.language import Language, Message, message
from busso.play.views.generic import legal_line, legal_texts
from busso.spike.cards import (
    BUY,
    DISCARD,
    FOLD,
    MATCH,
    NO_BUY,
    RAISE,
    SWAP_HIGHER,
    SWAP_LOWER,
    SWAP_SPIKE,
    VALUES,
    card_sum,
    signed,
    strength,
    value_of,
    winner,
)
from busso.spike.rules import next_hand, owed, price, proceed
from busso.spike.state import BET, BUYING, EXCHANGE, OVER, ROUNDS, PublicSeat, discarded, in_hand, public_seat, rolls

LETTERS = {  # as in `generic`
    RAISE: "r",
    MATCH: "m",
    FOLD: "f",
    BUY: "b",
    NO_BUY: "x",
    DISCARD: "d",
    SWAP_SPIKE: "s",
    SWAP_LOWER: "l",
    SWAP_HIGHER: "h",
}
_PHASES = {BET: "bet", BUYING: "buy", EXCHANGE: "exchange", OVER: "over"}
_DONE = ("raise", "match", "check", "fold", "buy", "no_buy", "swap_spike", "discard")  # events of a seat


@dataclass(frozen=True)
class SpikeView:
    """View of a seat. Cards are their values; `own` are the hand cards, the lower first, `sum` includes the spike card.

    `hand_number` counts from 1; `round` runs from 0, before the spike cards, to 3. `bought` is a bought card that this
    seat has to decide about, `to_match` this seat's current cost of matching, `dice` the rolls and `log` the events of
    this hand so far.
    """

    seat: int
    turn: int | None
    legal: tuple[str, ...]
    hand_number: int
    hands: int
    round: int
    phase: str
    own: tuple[int, int]
    sum: int
    bought: int | None
    seats: tuple[PublicSeat, ...]
    pool: int
    second_pot: int
    bet: int
    to_match: int
    raises: int
    discards: tuple[int, ...]
    dice: tuple[tuple[int, int], ...]
    log: tuple[Message, ...]


def view(hand: Hand, seat: int) -> SpikeView:
    """Return the view of the seat."""
    state = hand.state[0]
    players, played = int(state["players"]), int(state["hands_played"])
    mine = hand.turn == seat
    return SpikeView(
        seat=seat,
        turn=hand.turn,
        legal=legal_texts(hand) if mine else (),
        hand_number=played + (not hand.over),
        hands=int(state["hand_limit"]),
        round=int(state["round"]),
        phase=_PHASES[int(state["phase"])],
        own=_values(state["hands"][seat]),
        sum=int(card_sum(state, seat)),
        bought=value_of(state["bought"]) if mine else None,
        seats=tuple(public_seat(state, other) for other in range(players)),
        pool=int(state["pool"]),
        second_pot=int(state["second_pot"]),
        bet=int(state["bet"]),
        to_match=owed(state, seat),
        raises=int(state["raises"]),
        discards=discarded(state),
        dice=rolls(state),
        log=tuple(_log(hand)),
    )


def _values(cards: np.ndarray) -> tuple[int, int]:
    low, high = (int(VALUES[card]) for card in cards)
    return low, high


def _log(hand: Hand) -> list[Message]:
    """Return the events of the current hand, or of the last one when the game is over."""
    number = int(hand.state[0]["hands_played"]) - hand.over
    moves = [move for move in hand.moves if int(move.before[0]["hands_played"]) == number]
    return [told for move in moves for told in events(hand, move)]


def events(hand: Hand, move: Move) -> list[Message]:
    """Return the action, the dice rolled, and the hands that ended with it, as events."""
    found, before = [_done(move)], move.before[0]
    for ended, following in ends_of_hands(hand.game, move):
        found += [*_dice(before, ended, ended=True), *showdown(ended)]
        if following is None:
            return found
        found.append(message("event.next_hand", hand=int(ended["hands_played"]) + 1))
        before = following
    return [*found, *_dice(before, move.after[0], ended=False)]


def _done(move: Move) -> Message:
    """Return the seat's action without its hidden part: which hand card was exchanged, or the bought card itself."""
    seat, action, before = move.seat, move.action, move.before[0]
    if action in (RAISE, MATCH, BUY):
        key = {RAISE: "event.raise", MATCH: "event.match", BUY: "event.buy"}[action]
        amount = int(price(before, action))
        return message("event.check" if action == MATCH and not amount else key, seat=seat, amount=amount)
    if action in (FOLD, NO_BUY):
        return message("event.fold" if action == FOLD else "event.no_buy", seat=seat)
    if action == SWAP_SPIKE:
        old, new = int(VALUES[before["spikes"][seat]]), int(VALUES[before["bought"]])
        return message("event.swap_spike", seat=seat, old=f"{old:+d}", new=f"{new:+d}")
    card = before["bought"] if action == DISCARD else before["hands"][seat][action - SWAP_SPIKE - 1]
    return message("event.discard", seat=seat, card=f"{int(VALUES[card]):+d}")


def _dice(before: np.void, after: np.void, ended: bool) -> list[Message]:
    """Return the rolls between two states of a hand; `ended` if the second is its end, by a showdown or by folding."""
    first = max(int(before["round"]), 1)
    last = int(after["round"])
    if ended:
        last = ROUNDS + 1 if len(in_hand(after)) > 1 else first
    found = []
    for number in range(first, last):
        one, other = (int(die) for die in after["dice"][number - 1])
        key = "event.dice" if one != other else "event.dice_ones" if one == 1 else "event.dice_equal"
        found.append(message(key, first=one, second=other))
    return found


def ends_of_hands(game: Game, move: Move) -> list[tuple[np.void, np.void | None]]:
    """Return the states at the end of each hand that a move ended, and at the start of the next (None for the last).

    A hand in which no seat has credits left to decide about begins and ends without a move.
    """
    wanted = int(move.after[0]["hands_played"])
    if wanted == int(move.before[0]["hands_played"]):
        return []
    state: States = move.before.copy()
    state["hand_limit"] = state["hands_played"] + 1
    game.apply(state, np.array([move.action], np.uint8))
    found: list[tuple[np.void, np.void | None]] = []
    while True:
        ended = state.copy()[0]
        if int(state["hands_played"][0]) >= wanted:
            last = move.after[0]["phase"] == OVER
            return [*found, (ended, None if last else move.after[0])]
        state["hand_limit"] = state["hands_played"] + 1
        next_hand(state[0])
        found.append((ended, state.copy()[0]))
        proceed(state[0])


def showdown(state: np.void) -> list[Message]:
    """Return the cards shown at the end of a hand, the winner and the deciding rule; `state` is that at the end."""
    seats = in_hand(state)
    if len(seats) == 1:
        return [message("event.others_folded", seat=seats[0])]
    found = []
    for seat in seats:
        low, high = _values(state["hands"][seat])
        cards = " ".join(f"{value:+d}" for value in (low, high, int(VALUES[state["spikes"][seat]])))
        found.append(message("event.shows", seat=seat, cards=cards, sum=f"{int(card_sum(state, seat)):+d}"))
    seat = int(winner(state))
    found.append(message("event.wins", seat=seat, rule=message(f"rule.{_rule(state, seats)}")))
    return found


def _rule(state: np.void, seats: list[int]) -> str:
    """Return the rule that decides: the first part of `strength` (spike/cards.py) that differs."""
    best, other = sorted((int(strength(state, seat)) for seat in seats), reverse=True)[:2]
    parts = (("special", 32768), ("sum", 1024), ("positive", 512), ("cards", 16), ("card", 1))
    return next((name for name, unit in parts if best // unit != other // unit), "lot")


def result(hand: Hand) -> list[Message]:
    """Return the credits of each seat at the end."""
    state = hand.state[0]
    start = int(state["start_credits"])
    return [
        message("result.credits", seat=seat, credits=held, won=f"{held - start:+d}")
        for seat, held in enumerate(int(held) for held in state["credits"][: int(state["players"])])
    ]


def why_not(hand: Hand, action: int) -> Message:
    """Return the reason: the wrong phase, or the limit of raises."""
    state = hand.state[0]
    phase = int(state["phase"])
    if phase == BET and action == RAISE:
        return message("reason.raise_cap", most=int(state["raise_cap"]))
    return message({BET: "reason.betting", BUYING: "reason.buying"}.get(phase, "reason.exchange"))


def open_hands(hand: Hand) -> list[Message]:
    """Return the hand cards of each seat that is still in the hand."""
    state = hand.state[0]
    cards = {seat: " ".join(f"{value:+d}" for value in _values(state["hands"][seat])) for seat in in_hand(state)}
    return [message("watch.seat", seat=seat, cards=each) for seat, each in cards.items()]


def page(language: Language, game: str, seen: SpikeView, details: bool) -> Iterator[str]:
    """Yield the view in lines."""
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
    yield from legal_line(language, game, seen.legal)


class OpenHand(NamedTuple):
    """Seat at the end of a hand: its credits, and its cards if it showed them."""

    credits: int
    cards: tuple[int, ...] = ()  # the lower, the higher, the spike card


@dataclass(frozen=True)
class Ending:
    """End of a hand, `number` from 1: winner, credits `won`, deciding rule (None: all others folded), and dice."""

    number: int
    seats: tuple[OpenHand, ...]
    winner: int
    won: int
    rule: Message | None
    dice: tuple[tuple[int, int], ...]


def endings(hand: Hand, move: Move) -> list[Ending]:
    """Return the hands that ended with a move; more than one if no seat had credits to decide about."""
    found, before = [], move.before[0]
    for ended, _ in ends_of_hands(hand.game, move):
        told = showdown(ended)[-1]
        winner = int(told.values["seat"])
        rule = told.values.get("rule")
        found.append(
            Ending(
                number=int(ended["hands_played"]),
                seats=tuple(_open(ended, seat, rule is not None) for seat in range(int(ended["players"]))),
                winner=winner,
                won=int(ended["winnings"][winner]) - int(before["winnings"][winner]),
                rule=rule,
                dice=rolls(ended, to_the_end=rule is not None),
            )
        )
        before = ended
    return found


def _open(state: np.void, seat: int, shown: bool) -> OpenHand:
    credits = int(state["credits"][seat])
    if not (shown and seat in in_hand(state)):
        return OpenHand(credits)
    return OpenHand(credits, tuple(int(VALUES[card]) for card in (*state["hands"][seat], state["spikes"][seat])))


def compile_rules(hand: Hand) -> None:
    """Compile what the first price and the first showdown need; meant for a background thread."""
    state = hand.state.copy()[0]
    state["spikes"] = 0
    price(state, MATCH)
    showdown(state)


def costs(hand: Hand) -> dict[int, int]:
    """Return the cost of each legal action of the seat to move that may cost something."""
    return {action: int(price(hand.state[0], action)) for action in hand.legal if action in (RAISE, MATCH, BUY)}


def sums_after(seen: SpikeView) -> dict[int, int]:
    """Return the sum of the seat after each possible use of a bought card; empty without one."""
    spike = seen.seats[seen.seat].spike
    if seen.bought is None or spike is None:
        return {}
    gives_up = {DISCARD: seen.bought, SWAP_SPIKE: spike, SWAP_LOWER: seen.own[0], SWAP_HIGHER: seen.own[1]}
    return {action: seen.sum + seen.bought - card for action, card in gives_up.items()}


def last_done(log: Sequence[Message]) -> dict[int, tuple[str, Message]]:
    """Return the last action of each seat in a hand: the last part of its event's key, and the event."""
    found = {}
    for told in log:
        name = told.key.removeprefix("event.")
        if name in _DONE:
            found[int(told.values["seat"])] = (name, told)
    return found


def counted(cards: Sequence[int]) -> str:
    """Return cards by rising value, equal ones combined: `-3 0x2 +4`."""
    values = sorted(set(cards))
    return " ".join(signed(value) + (f"x{cards.count(value)}" if cards.count(value) > 1 else "") for value in values)
