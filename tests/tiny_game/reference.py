"""Kuhn poker a second time, as slowly as it reads: words in lists, written from the rules on paper alone."""

from collections.abc import Callable, Sequence
from itertools import permutations

CARDS = ["J", "Q", "K"]
# A seat's card and what was done before -> probability to bet.
Strategy = Callable[[str, tuple[str, ...]], float]
# Every line of play that ends a game, and what the first seat then has won: "*" stands for the higher card's seat.
ENDS = {
    ("pass", "pass"): ("*", 0),
    ("bet", "pass"): ("first", 0),
    ("bet", "bet"): ("*", 1),
    ("pass", "bet", "pass"): ("second", 0),
    ("pass", "bet", "bet"): ("*", 1),
}


def legal(plays: Sequence[str]) -> list[str]:
    return [] if tuple(plays) in ENDS else ["pass", "bet"]


def turn(plays: Sequence[str]) -> int:
    return len(plays) % 2


def chips(cards: Sequence[str], plays: Sequence[str], bet: int = 1) -> list[int]:
    """What each seat has won at the end: the ante, and the bet if it was called."""
    winner, called = ENDS[tuple(plays)]
    if winner == "*":
        winner = "first" if CARDS.index(cards[0]) > CARDS.index(cards[1]) else "second"
    won = 1 + called * bet
    return [won, -won] if winner == "first" else [-won, won]


def observation(cards: Sequence[str], plays: Sequence[str], seat: int) -> list[bool]:
    """What a seat may know, in the order of the layout table."""
    bets = [any(play == "bet" for play in plays[who::2]) for who in (0, 1)]
    return [*(cards[seat] == card for card in CARDS), bets[seat], bets[1 - seat], seat == 0]


def value(first: Strategy, second: Strategy) -> float:
    """What the first seat wins on average, exactly: over all deals and lines of play."""
    deals = list(permutations(CARDS, 2))
    return sum(_value(cards, (), (first, second)) for cards in deals) / len(deals)


def _value(cards: tuple[str, ...], plays: tuple[str, ...], strategies: tuple[Strategy, Strategy]) -> float:
    if plays in ENDS:
        return chips(cards, plays)[0]
    seat = turn(plays)
    bets = strategies[seat](cards[seat], plays)
    return sum(
        chance * _value(cards, (*plays, play), strategies)
        for play, chance in (("pass", 1 - bets), ("bet", bets))
        if chance
    )
