"""Second implementation of Tressette: slow and readable, with lists of card names, from the rules alone."""

from collections.abc import Sequence

RANKS = ["4", "5", "6", "7", "F", "C", "R", "A", "2", "3"]
SUITS = ["D", "C", "S", "B"]
DECK = [rank + suit for suit in SUITS for rank in RANKS]
THIRDS = {"A": 3, "2": 1, "3": 1, "R": 1, "C": 1, "F": 1}
SIGNALS = ["busso", "striscio", "volo"]


def suit_of(card: str) -> str:
    return card[1]


def strength(card: str) -> int:
    return RANKS.index(card[0])


def is_high(card: str) -> bool:
    """Return whether a card is an ace, a 2 or a 3."""
    return card[0] in "A23"


# Possible declarations in the order of the observation, with their points.
ACCUSI = {f"napoletana {suit}": 3 for suit in SUITS}
for _rank in "A23":
    ACCUSI |= {f"three {_rank} without {suit}": 3 for suit in SUITS} | {f"four {_rank}": 4}


def accusi(cards: Sequence[str]) -> set[str]:
    """Return all declarations of ten dealt cards."""
    found = {f"napoletana {suit}" for suit in SUITS if {"A" + suit, "2" + suit, "3" + suit} <= set(cards)}
    for rank in "A23":
        missing = [suit for suit in SUITS if rank + suit not in cards]
        if not missing:
            found.add(f"four {rank}")
        if len(missing) == 1:
            found.add(f"three {rank} without {missing[0]}")
    return found


class Hand:
    """A hand; `history` is public: seats, cards, leaders' signals. `declared` is by seat, before its first card."""

    def __init__(
        self, hands: Sequence[Sequence[str]], leader: int, signals: bool = False, with_accusi: bool = False
    ) -> None:
        self.with_accusi = with_accusi
        self.declared: list[set[str]] = [set(), set(), set(), set()]
        self.hands = [list(hand) for hand in hands]
        self.turn = leader
        self.first_leader = leader
        self.with_signals = signals
        self.history: list[tuple[int, str, str | None]] = []
        self.rewards = {"points": [0.0] * 4, "win": [0.0] * 4, "points_and_win": [0.0] * 4, "study": [0.0] * 4}

    def trick(self) -> list[tuple[int, str]]:
        """Return the current trick: seats and cards in order; empty when the next card opens one."""
        start = len(self.history) // 4 * 4
        return [(seat, card) for seat, card, _ in self.history[start:]]

    def tricks(self) -> list[list[tuple[int, str]]]:
        """Return the closed tricks."""
        plays = [(seat, card) for seat, card, _ in self.history]
        return [plays[k : k + 4] for k in range(0, len(plays) // 4 * 4, 4)]

    def leader(self) -> int:
        """Seat that leads or will lead the current trick."""
        trick = self.trick()
        if trick:
            return trick[0][0]
        return taker(self.tricks()[-1]) if self.history else self.first_leader

    def over(self) -> bool:
        return len(self.history) == 40

    def legal(self) -> list[str]:
        hand, trick = self.hands[self.turn], self.trick()
        if not trick:
            return list(hand)
        same = [card for card in hand if suit_of(card) == suit_of(trick[0][1])]
        return same or list(hand)

    def play(self, card: str) -> None:
        assert card in self.legal()
        seat = self.turn
        opens = not self.trick()
        if self.with_accusi and len(self.hands[seat]) == 10:
            self.declared[seat] = accusi(self.hands[seat])
        self.hands[seat].remove(card)
        self.history.append((seat, card, self._said(seat, suit_of(card)) if opens and self.with_signals else None))
        self.turn = (seat + 1) % 4 if self.trick() else taker(self.tricks()[-1])
        self._reward(seat, card)

    def _said(self, seat: int, suit: str) -> str:
        rest = [card for card in self.hands[seat] if suit_of(card) == suit]
        if "2" + suit in rest or "3" + suit in rest:
            return "busso"
        return "striscio" if rest else "volo"

    def thirds(self) -> list[int]:
        """Return the thirds of a point in each team's tricks."""
        both = [0, 0]
        for trick in self.tricks():
            both[taker(trick) % 2] += sum(THIRDS.get(card[0], 0) for _, card in trick)
        return both

    def points(self) -> list[int]:
        """Return each team's points after the hand."""
        both = [thirds // 3 for thirds in self.thirds()]
        both[taker(self.tricks()[-1]) % 2] += 1
        return both

    def signals(self) -> dict[tuple[int, str], str]:
        """Return the latest signal of each seat in each suit."""
        return {(seat, suit_of(card)): word for seat, card, word in self.history if word}

    def promised(self) -> set[tuple[int, str]]:
        """Return seats and suits whose latest signal promised a card (a 2 or 3, or any) not yet played."""
        found = set()
        for number, (seat, card, word) in enumerate(self.history):
            suit = suit_of(card)
            later = [other for who, other, _ in self.history[number + 1 :] if who == seat and suit_of(other) == suit]
            shown = [other for other in later if word == "striscio" or other[0] in "23"]
            if word in ("busso", "striscio") and not shown and not self._says_again(number):
                found.add((seat, suit))
        return found

    def _says_again(self, number: int) -> bool:
        """Return whether the seat of this play later gives another signal in the same suit."""
        seat, card, _ = self.history[number]
        later = self.history[number + 1 :]
        return any(who == seat and suit_of(other) == suit_of(card) and word for who, other, word in later)

    def accusi_points(self) -> list[int]:
        """Return the points of each team's declarations."""
        return [sum(ACCUSI[word] for seat in (team, team + 2) for word in self.declared[seat]) for team in (0, 1)]

    def known_voids(self) -> set[tuple[int, str]]:
        """Return the seats known to be void in a suit, by not following it or by saying volo."""
        voids = {key for key, word in self.signals().items() if word == "volo"}
        for trick in [*self.tricks(), self.trick()]:
            led = [suit_of(card) for _, card in trick[:1]]
            voids |= {(seat, suit) for suit in led for seat, card in trick if suit_of(card) != suit}
        return voids

    def observation(self, observer: int) -> list[bool]:
        """Return the observation of a seat, in the order of the layout table."""
        order = [(observer + k) % 4 for k in range(4)]
        lying = dict(self.trick())
        thirds, leader = self.thirds(), self.leader()
        voids, signals = self.known_voids(), self.signals()
        bits = [card in self.hands[observer] for card in DECK]
        for seat in order[1:]:
            bits += [lying.get(seat) == card for card in DECK]
        for seat in order:
            played = [card for who, card, _ in self.history if who == seat]
            bits += [card in played for card in DECK]
        for seat in order:
            bits += [(seat, suit) in voids for suit in SUITS]
        for seat in order:
            bits += [signals.get((seat, suit)) == word for suit in SUITS for word in SIGNALS]
        for team in (observer % 2, 1 - observer % 2):
            bits += [k < thirds[team] for k in range(32)]
        bits += [min(len(self.tricks()), 9) == k for k in range(10)]
        bits += [leader == seat for seat in order]
        bits += self._more_observation(observer, order)
        if self.with_accusi:
            for seat in order:
                bits += [word in self.declared[seat] for word in ACCUSI]
        return bits

    def _more_observation(self, observer: int, order: list[int]) -> list[bool]:
        """Return the cards led and discarded, and the conclusions from the table."""
        tricks = [*self.tricks(), self.trick()]
        bits = []
        for seat in order:
            led = [trick[0][1] for trick in tricks if trick and trick[0][0] == seat]
            bits += [card in led for card in DECK]
        for seat in order:
            played = [(card, trick[0][1]) for trick in tricks for who, card in trick if who == seat]
            discarded = [card for card, first in played if suit_of(card) != suit_of(first)]
            bits += [card in discarded for card in DECK]
        hand, lying = self.hands[observer], self.trick()
        table = [card for _, card in lying]
        for card in DECK:
            bits.append(card in hand and bool(lying) and taker([*lying, (-1, card)]) == -1)
        bits += [bool(lying) and taker(lying) == seat for seat in order]
        bits += [k < sum(THIRDS.get(card[0], 0) for card in table) for k in range(12)]
        gone = {card for _, card, _ in self.history} - set(table)
        others = [card for card in DECK if card not in gone and card not in hand]
        best = {suit: max((strength(card) for card in others if suit_of(card) == suit), default=-1) for suit in SUITS}
        bits += [card in hand and strength(card) > best[suit_of(card)] for card in DECK]
        bits += [card in others and strength(card) == best[suit_of(card)] for card in DECK]
        return bits

    def _reward(self, seat: int, card: str) -> None:
        seed = self.rewards["study"]
        seed[seat] += -0.2 if card[0] == "A" else -0.1 if is_high(card) else 0.05
        if not self.trick():
            last = self.tricks()[-1]
            if taker(last) % 2 == seat % 2:
                seed[seat] += 0.5 + 0.3 * len([other for _, other in last if is_high(other)])
            else:
                seed[seat] -= 0.5
        if self.over():
            for each in range(4):
                difference = self.points()[each % 2] - self.points()[1 - each % 2]
                seed[each] += difference
                self.rewards["points"][each] += difference / 11
                self.rewards["win"][each] += 1 if difference > 0 else -1
                self.rewards["points_and_win"][each] += (difference + (3 if difference > 0 else -3)) / 11


def taker(trick: list[tuple[int, str]]) -> int:
    """Return the seat of the highest card of the suit led."""
    following = [(strength(card), seat) for seat, card in trick if suit_of(card) == suit_of(trick[0][1])]
    return max(following)[1]
