"""Second implementation of Corellian Spike in plain Python, slow and close to the text of the rules.

A hand is a generator that yields at every decision and is sent the action. Cards are values. Random events come from a
`Script`, so that nothing here depends on the engine's decks.
"""

from collections import Counter
from collections.abc import Generator
from dataclasses import dataclass, field
from typing import Any

GAMMA = 0x9E3779B97F4A7C15
WORD = 2**64
LEVELS = (2, 4, 6, 8, 10, 14, 18, 22, 26, 30, 36, 42, 48, 54, 60, 70, 80, 100, 150, 200)
ALL_CARDS = sorted([0, 0] + [v for v in range(-10, 11) if v for _ in range(3)])


def mix(z: int) -> int:
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 % WORD
    z = (z ^ z >> 27) * 0x94D049BB133111EB % WORD
    return z ^ z >> 31


@dataclass
class Script:
    """Random events of one hand."""

    deck: list[int]
    dice: list[tuple[int, int]]
    lot: int
    shuffle: int


@dataclass
class Rules:
    ante: int = 2
    bet: int = 2
    raise_cap: int | None = None
    sabacc_pot: bool = False
    special_hands: bool = False


@dataclass
class Hand:
    """Cards and credits on the table."""

    rules: Rules
    credits: list[int]
    script: Script
    first: int = 0
    second_pot: int = 0
    pool: int = 0
    round: int = 0
    turn: int = 0
    raises: int = 0
    raiser: int | None = None
    phase: str = "bet"
    bought: int | None = None
    winner: int | None = None
    reshuffles: int = 0
    folded: set[int] = field(default_factory=set)
    hands: list[list[int]] = field(default_factory=list)
    spikes: list[int | None] = field(default_factory=list)
    waiting: list[int] = field(default_factory=list)
    discards: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.deck = list(self.script.deck)
        self.shuffle_state = self.script.shuffle
        self.seats = range(len(self.credits))

    def legal(self) -> set[int]:
        if self.phase == "buy":
            return {3, 4}
        if self.phase == "exchange":
            return {5, 6, 7, 8}
        capped = self.rules.raise_cap is not None and self.raises >= self.rules.raise_cap
        return {1, 2} if capped else {0, 1, 2}

    def play(self) -> Generator[None, int, None]:
        for seat in self.seats:
            self.pay(seat, self.rules.ante)
            if self.rules.sabacc_pot and self.credits[seat]:
                self.credits[seat] -= 1
                self.second_pot += 1
        self.hands = [[] for _ in self.seats]
        self.spikes = [None for _ in self.seats]
        self.new_hands()
        yield from self.betting()
        for number in (1, 2, 3):
            if self.done():
                return
            if number == 1:
                self.new_spikes()
            self.round = number
            self.reshuffle_if_fewer(len(self.seats))
            yield from self.buying()
            yield from self.betting()
            if self.done():
                return
            self.roll(*self.script.dice[number - 1])
        self.showdown()

    def pay(self, seat: int, amount: int) -> None:
        amount = min(amount, self.credits[seat])
        self.credits[seat] -= amount
        self.pool += amount

    def still_in(self) -> list[int]:
        return [seat for seat in self.seats if seat not in self.folded]

    def in_turn(self, start: int) -> list[int]:
        n = len(self.seats)
        return [(start + k) % n for k in range(n)]

    def new_hands(self) -> None:
        for seat in self.still_in():
            self.hands[seat] = [self.deck.pop(0)]
        for seat in self.still_in():
            self.hands[seat].append(self.deck.pop(0))
            self.hands[seat].sort()

    def new_spikes(self) -> None:
        for seat in self.still_in():
            self.spikes[seat] = self.deck.pop(0)

    def betting(self) -> Generator[None, int, None]:
        self.phase, self.raises, self.raiser = "bet", 0, None
        self.waiting = self.in_turn(self.first)
        while self.waiting:
            seat = self.waiting.pop(0)
            if not self.may_act(seat):
                continue
            self.turn = seat
            action = yield
            if action == 0:
                self.pay(seat, self.rules.bet)
                self.raises += 1
                self.raiser = seat
                self.waiting = self.in_turn(seat + 1)[:-1]
            elif action == 1:
                self.pay(seat, self.rules.bet if self.raises else 0)
            else:
                self.folded.add(seat)
                if len(self.still_in()) == 1:
                    self.take_pool(self.still_in()[0])
                    return

    def buying(self) -> Generator[None, int, None]:
        self.raises, self.raiser = 0, None
        self.waiting = self.in_turn(self.first)
        while self.waiting:
            seat = self.waiting.pop(0)
            if not self.may_act(seat):
                continue
            self.turn, self.phase = seat, "buy"
            if (yield) == 4:
                continue
            self.pay(seat, 2)
            self.bought, self.phase = self.deck.pop(0), "exchange"
            action = yield
            gone = self.bought
            if action == 6:
                gone, self.spikes[seat] = self.spikes[seat], gone
            elif action in (7, 8):
                gone, self.hands[seat][action - 7] = self.hands[seat][action - 7], gone
                self.hands[seat].sort()
            self.discards.append(gone)
            self.bought = None

    def roll(self, one: int, other: int) -> None:
        self.reshuffle_if_fewer(3 * len(self.seats))
        if one != other:
            return
        for seat in self.still_in():
            self.discards += self.hands[seat]
            if one == 1:
                self.discards.append(self.spikes[seat])
        if one == 1:
            self.new_spikes()
        self.new_hands()

    def reshuffle_if_fewer(self, cards: int) -> None:
        if len(self.deck) >= cards:
            return
        self.reshuffles += 1
        self.deck += sorted(self.discards)
        self.discards = []
        if self.shuffle_state == 0:
            return
        n = len(self.deck)
        for k in range(n):
            self.shuffle_state = (self.shuffle_state + GAMMA) % WORD
            other = k + ((mix(self.shuffle_state) >> 32) * (n - k) >> 32)
            self.deck[k], self.deck[other] = self.deck[other], self.deck[k]

    def cards(self, seat: int) -> list[int]:
        return [*self.hands[seat], self.spikes[seat]]

    def showdown(self) -> None:
        best = max(self.worth(seat) for seat in self.still_in())
        tied = [seat for seat in self.still_in() if self.worth(seat) == best]
        winner = tied[self.script.lot % len(tied)]
        if sum(self.cards(winner)) == 0:
            self.pool += self.second_pot
            self.second_pot = 0
        self.take_pool(winner)

    def worth(self, seat: int) -> tuple[Any, ...]:
        cards = self.cards(seat)
        positive = [card for card in cards if card > 0]
        return (
            self.rank(cards) if self.rules.special_hands else 0,
            -abs(sum(cards)),
            sum(cards) > 0,
            sum(positive),
            max(positive, default=0),
        )

    @staticmethod
    def rank(cards: list[int]) -> int:
        if cards.count(0) == 2:
            return 3
        if sorted(cards) == [-10, 0, 10]:
            return 2
        return int(0 in cards and sum(cards) == 0)

    def take_pool(self, seat: int) -> None:
        self.credits[seat] += self.pool
        self.winner = seat

    def done(self) -> bool:
        return self.winner is not None

    def observation(self, seat: int, hands_left: int) -> list[bool]:
        """Return what a seat sees, in the order of the layout table; nothing for an empty seat."""
        if seat not in self.seats:
            return [False] * 623
        order = self.in_turn(seat)
        bought = self.bought if seat == self.turn else None
        bits = [card == value for card in (*self.cards(seat), bought) for value in range(-10, 11)]
        total = sum(card for card in self.cards(seat) if card is not None)
        bits += [max(-15, min(total, 15)) == value for value in range(-15, 16)]
        for gone in (self.spikes[seat], *self.hands[seat]):
            after = None if bought is None else min(abs(total + bought - gone), 10)
            bits += [after == k for k in range(11)]
        for other in order[1:]:
            bits += [True, other not in self.folded, other not in self.folded and not self.credits[other]]
            bits.append(other == self.turn or (other in self.waiting and self.may_act(other)))
            bits += [self.spikes[other] == value for value in range(-10, 11)]
            bits += [self.credits[other] >= level for level in LEVELS]
        bits += [False] * 45 * (8 - len(order))
        for amount in (self.credits[seat], self.pool, self.second_pot):
            bits += [amount >= level for level in LEVELS]
        bits.append(self.raiser is not None)
        bits += [self.round == k for k in range(4)]
        bits += [self.phase == phase for phase in ("bet", "buy", "exchange")]
        bits += [other == self.raiser for other in order] + [False] * (8 - len(order))
        bits += [self.raises > k for k in range(4)]
        bits += [self.discards.count(v) > k for v in range(-10, 11) for k in range(3 if v else 2)]
        bits += [other == self.first for other in order] + [False] * (8 - len(order))
        return bits + [hands_left > k for k in range(10)]

    def may_act(self, seat: int) -> bool:
        return seat not in self.folded and self.credits[seat] > 0

    def check_cards(self) -> None:
        """Check that every card is in exactly one place."""
        held = [card for hand in self.hands for card in hand] + [card for card in self.spikes if card is not None]
        held += [] if self.bought is None else [self.bought]
        assert Counter(held + self.deck + self.discards) == Counter(ALL_CARDS)
