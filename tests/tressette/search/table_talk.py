"""Public view of a hand of Tressette, and the deals that look the same: slow, from the rules alone.

A deal agrees with a seat's knowledge exactly if the same cards, played from it, are legal and produce the same public
view. Engine states are used only for the dealt hands and the cards played.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from busso.cards.game import Game, States
from busso.cards.play import play
from busso.cards.players import named_player
from busso.tressette.rules import LEADER_FOUR_OF_DENARI

Hands = tuple[frozenset[int], ...]
NAMES = "4567FCRA23"


@dataclass(frozen=True)
class Moment:
    """A hand before its next card: dealt hands, first leader, cards played in order, options."""

    dealt: Hands
    opener: int
    cards: tuple[int, ...]
    signals: bool
    accusi: bool
    four_of_denari: bool
    seat: int  # to move

    def seen(self, dealt: Hands) -> list[object] | None:
        """Return the public view of this deal, every card and word; None if a card was illegal."""
        return _replay(self, dealt)

    @cached_property
    def heard(self) -> list[object] | None:
        """Return the public view."""
        return self.seen(self.dealt)

    @cached_property
    def hands(self) -> Hands:
        return tuple(frozenset(hand - set(self.cards)) for hand in self.dealt)

    @cached_property
    def played(self) -> Hands:
        return tuple(hand & set(self.cards) for hand in self.dealt)

    def agrees(self, hands: Hands) -> bool:
        """Return whether these may be the current hands, given the knowledge of the seat to move."""
        played = self.played
        if hands[self.seat] != self.hands[self.seat] or any(
            len(one) != len(other) for one, other in zip(hands, self.hands, strict=True)
        ):
            return False
        dealt = tuple(frozenset(hand | gone) for hand, gone in zip(hands, played, strict=True))
        if sorted(card for hand in dealt for card in hand) != list(range(40)):
            return False
        return self.seen(dealt) == self.heard

    def all_deals(self) -> Iterator[Hands]:
        """Yield every distribution of the unseen cards, ignoring what is known of them."""
        hands = self.hands
        others = [seat for seat in range(4) if seat != self.seat]
        unseen = frozenset().union(*(hands[seat] for seat in others))
        for first in combinations(sorted(unseen), len(hands[others[0]])):
            rest = unseen - set(first)
            for second in combinations(sorted(rest), len(hands[others[1]])):
                shares = {self.seat: hands[self.seat], others[0]: frozenset(first), others[1]: frozenset(second)}
                shares[others[2]] = rest - set(second)
                yield tuple(shares[seat] for seat in range(4))


def _replay(moment: Moment, dealt: Hands) -> list[object] | None:
    if moment.four_of_denari and 0 not in dealt[moment.opener]:
        return None
    hands = [set(hand) for hand in dealt]
    seat, trick, seen = moment.opener, list[tuple[int, int]](), list[object]()
    for number, card in enumerate(moment.cards):
        hand = hands[seat]
        led = trick[0][1] // 10 if trick else card // 10
        if card not in hand or (card // 10 != led and any(other // 10 == led for other in hand)):
            return None
        if moment.accusi and number < 4:
            seen.append(declared(hand))
        hand.remove(card)
        if moment.signals and not trick:
            seen.append(_word([other for other in hand if other // 10 == led]))
        trick.append((seat, card))
        seen.append((seat, card))
        seat = (seat + 1) % 4
        if len(trick) == 4:
            seat = max((played % 10, who) for who, played in trick if played // 10 == led)[1]
            trick = []
    return seen


def _word(rest: list[int]) -> str:
    if any(NAMES[card % 10] in "23" for card in rest):
        return "busso"
    return "striscio" if rest else "volo"


def declared(hand: set[int]) -> frozenset[tuple[str, object]]:
    """Return the accusi of a dealt hand: napoletane by suit, threes and fours by rank with their suits."""
    words: set[tuple[str, object]] = set()
    for suit in range(4):
        if {10 * suit + NAMES.index(rank) for rank in "A23"} <= hand:
            words.add(("napoletana", suit))
    for rank in "A23":
        suits = frozenset(card // 10 for card in hand if NAMES[card % 10] == rank)
        if len(suits) >= 3:
            words.add((rank, suits))
    return frozenset(words)


def cards_of(bits: int) -> frozenset[int]:
    return frozenset(card for card in range(40) if bits >> card & 1)


def hands_of(words: Sequence[int] | NDArray[np.uint64]) -> Hands:
    return tuple(cards_of(int(word)) for word in words)


def bits_of(hands: Hands) -> list[int]:
    return [sum(1 << card for card in hand) for hand in hands]


def moment_of(state: np.void) -> Moment:
    return Moment(
        hands_of(state["hands"] | state["played"]),
        int(state["opener"]),
        tuple(state["order"][: int(state["plays"])].tolist()),
        bool(state["with_signals"]),
        bool(state["with_accusi"]),
        state["first_leader"] == LEADER_FOUR_OF_DENARI,
        int(state["turn"]),
    )


def moments(
    game: Game, seeds: NDArray[np.uint64], player: str, plays: Sequence[int]
) -> Iterator[tuple[States, list[Moment]]]:
    """Yield the states of these deals after each number of cards by one player, and their public views."""
    kept: list[States] = []
    seating = np.zeros((seeds.size, 4), np.uint8)
    play(game, seeds, [named_player(game, player)], seating, watch=lambda now, *_: kept.append(now.states.copy()))
    for number in plays:
        yield kept[number], [moment_of(state) for state in kept[number]]
