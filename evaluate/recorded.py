"""Recorded games as hands that one can step through, with the very cards that were drawn."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from cards.compiled.splitmix import stream
from cards.game import Game, States, load_game
from cards.hand import Hand, Move
from cards.records import field
from command.terminal.visible import one_line
from evaluate.replay import replay_records

_ONLY_SEAT = 0


@dataclass(frozen=True)
class Recorded:
    """A hand of a file: its line, from 1, and, of a match, the score to which it goes, before and after the hand.

    `part` is its number, from 1, where one record has `parts` hands. `names` are those of who sat, by seat, if the
    record has them.
    """

    hand: Hand
    line: int
    part: int = 1
    parts: int = 1
    to: int | None = None
    before: tuple[int, ...] = ()
    after: tuple[int, ...] = ()
    names: tuple[str, ...] = ()


@dataclass(frozen=True)
class Damaged:
    """A line, from 1, whose record cannot be played, and why."""

    line: int
    error: str


class _DrawnHand(Hand):
    """A hand whose cards are known from its record, not from a generator: `cards` are those of the player at first."""

    def __init__(self, game: Game, line: int, start: States, record: dict[str, Any], cards: int) -> None:
        super().__init__(game, stream(line, "recorded", 0, 1), start)
        self._record, self._cards = record, cards

    def play(self, action: int) -> Move:
        """Only what was recorded can be looked at. Raises ValueError."""
        raise ValueError(f"{self.game.name}: a recorded game is not played on")

    def record(self) -> dict[str, Any]:
        """The record, with the cards that the player has drawn so far."""
        drawn = sum(self.game.action_text(move.action) == "hit" for move in self.moves)
        return self._record | {"player": self._record["player"][: self._cards + drawn]}

    def add(self, action: int, after: States) -> None:
        """The next move, with the state `[1]` that came of it."""
        self.moves.append(Move(_ONLY_SEAT, action, self.state, after))
        self._look()


def recorded_hands(path: Path) -> Iterator[Recorded | Damaged]:
    """The hands of a file of records in order, with what cannot be played in its place. Raises OSError."""
    for record, result in replay_records(path):
        line = result["line"]
        if isinstance(record, ValueError) or "error" in result:
            yield Damaged(line, one_line(result["error"]))
            continue
        name = str(field(record, "game"))
        if name in _HANDS:
            yield from _numbered(line, record, result, list(_HANDS[name](record, line)))
        else:
            yield Damaged(line, f"game: records of {name} cannot be shown")


def _numbered(line: int, record: dict[str, Any], result: dict[str, Any], hands: list[Hand]) -> list[Recorded]:
    names = tuple(map(one_line, record.get("names", ())))  # as they are shown, everywhere
    if "match" in record:
        before, after = tuple(record["score"]), tuple(result["score"])
        return [Recorded(hands[0], line, 1, 1, record["to"], before, after, names)]
    return [Recorded(hand, line, part, len(hands), names=names) for part, hand in enumerate(hands, start=1)]


def _tressette(record: dict[str, Any], line: int) -> Iterator[Hand]:
    from tressette.cards import parse_card
    from tressette.rules import begin

    game = load_game("tressette", {"accusi": bool(record.get("accusi"))})
    state = np.array([game.blank])
    state[0]["hands"] = [sum(1 << int(parse_card(card)) for card in cards) for cards in record["hands"]]
    begin(state[0], record["leader"])
    yield _played(
        Hand(game, stream(line, "recorded", 0, 1), state), [int(parse_card(card)) for card in record["plays"]]
    )


def _spike(record: dict[str, Any], line: int) -> Iterator[Hand]:
    from dataclasses import asdict

    from spike.records import dealt, options_of

    hands = record.get("hands", [record])
    first = set(hands[0]["credits"])
    for number, hand in enumerate(hands):
        options = asdict(options_of(hand)) | {"seats": record["players"], "hands": 1}
        state = dealt(hand, record["players"])
        # What is won is counted from what all began with; from 0 where they began with different credits.
        state["start_credits"] = first.copy().pop() if len(first) == 1 else 0
        seeds = stream(line, "recorded", number, 1)
        yield _played(Hand(load_game("spike", options), seeds, state), hand["actions"])


def _played(hand: Hand, actions: list[int]) -> Hand:
    for action in actions:
        hand.play(action)
    return hand


def _blackjack(record: dict[str, Any], line: int) -> Iterator[Hand]:
    from blackjack.cards import MAX_SUM, parse_card
    from blackjack.rules import HIT, STAND, begin, dealer_draws, give_dealer, give_player

    game = load_game("blackjack", {key: record[key] for key in ("decks", "soft_17", "ties")})
    state = np.array([game.blank])
    player, dealer = ([int(parse_card(card)) for card in record[side]] for side in ("player", "dealer"))

    def take(rank: int) -> int:
        state[0]["taken"][rank] += int(state[0]["decks"] > 0)  # an infinite shoe does not count
        return rank

    begin(state[0], *map(take, (*player[:2], *dealer[:2])))
    hand = _DrawnHand(game, line, state, record, 2)
    for action in [HIT] * (len(player) - 2) + [STAND]:
        if hand.over:
            break
        if action == HIT:
            give_player(state[0], take(player[2 + len(hand.moves)]))
        if action == STAND or state[0]["sum"] >= MAX_SUM:
            for rank in dealer[2:]:
                assert dealer_draws(state[0])
                give_dealer(state[0], take(rank))
            state[0]["ended"] = 1
        hand.add(action, state.copy())
    yield hand


def _sette_mezzo(record: dict[str, Any], line: int) -> Iterator[Hand]:
    from sette_mezzo.cards import parse_card
    from sette_mezzo.rules import HIT, STICK, begin, give_opponent, give_player

    game = load_game("sette_mezzo", {"limit": record["limit"]})
    state = np.array([game.blank])
    player, opponent = ([int(parse_card(card)) for card in record[side]] for side in ("player", "opponent"))
    begin(state[0], player[0], opponent[0])
    hand = _DrawnHand(game, line, state, record, 1)
    for rank in player[1:]:
        give_player(state[0], rank)
        hand.add(HIT, state.copy())
    if not hand.over:
        for rank in opponent[1:]:
            give_opponent(state[0], rank)
        state[0]["ended"] = 1
        hand.add(STICK, state.copy())
    yield hand


_HANDS: dict[str, Callable[[dict[str, Any], int], Iterator[Hand]]] = {
    "tressette": _tressette,
    "spike": _spike,
    "blackjack": _blackjack,
    "sette_mezzo": _sette_mezzo,
}
