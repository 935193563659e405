"""Second implementation of two-player Briscola: slow and readable, with cards as text, from the rules alone."""

DECK = [rank + suit for suit in "DCSB" for rank in "24567FCR3A"]
COUNTS = {"A": 11, "3": 10, "R": 4, "C": 3, "F": 2}


def counts(cards: list[str]) -> int:
    return sum(COUNTS.get(card[0], 0) for card in cards)


def second_takes(first: str, second: str, trumps: str) -> bool:
    """Return whether the answer beats the card led."""
    if first[1] == second[1]:
        return "24567FCR3A".find(second[0]) > "24567FCR3A".find(first[0])
    return second[1] == trumps


class Table:
    """A game from the deck in deal order; `won` are the tricks that each seat has taken."""

    def __init__(self, deck: list[str]) -> None:
        self.hands = [deck[:3], deck[3:6]]
        self.turned = deck[-1]
        self.stock = deck[6:]
        self.led: str | None = None
        self.turn = 0
        self.won: list[list[str]] = [[], []]
        self.played: list[list[str]] = [[], []]

    def over(self) -> bool:
        return sum(map(len, self.won)) == 40

    def points(self) -> list[int]:
        return [counts(cards) for cards in self.won]

    def play(self, card: str) -> None:
        seat = self.turn
        self.hands[seat].remove(card)
        self.played[seat].append(card)
        if self.led is None:
            self.led, self.turn = card, 1 - seat
            return
        winner = seat if second_takes(self.led, card, self.turned[1]) else 1 - seat
        self.won[winner] += [self.led, card]
        self.led, self.turn = None, winner
        if self.stock:
            self.hands[winner].append(self.stock.pop(0))
            self.hands[1 - winner].append(self.stock.pop(0))

    def observation(self, seat: int) -> list[bool]:
        """Return a seat's observation in the order of the layout table."""
        points = self.points()
        other = self.hands[1 - seat] if not self.stock else []
        sets = [self.hands[seat], [self.led], self.played[seat], self.played[1 - seat], [self.turned]]
        bits = [card in cards for cards in sets for card in DECK]
        bits += [suit == self.turned[1] for suit in "DCSB"]
        bits += [card in other for card in DECK]
        bits += [points[who] > below for who in (seat, 1 - seat) for below in range(61)]
        return bits + [len(self.stock) > 2 * below for below in range(17)]
