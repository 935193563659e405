"""Counts of deals that agree with a seat's knowledge, optionally with a card in a given hand, suit by suit.

They are exact for positions too large to enumerate. Each suit is distributed card by card, checked against all signals
and plays in it, and combined with the suits before by number of cards per hand and, under accusi, by aces, twos and
threes.
"""

from collections import Counter
from collections.abc import Iterator
from functools import lru_cache

from tests.tressette.search.table_talk import NAMES, Moment, declared

Share = tuple[tuple[int, frozenset[int]], ...]  # by hidden seat: number of cards, and which A, 2 and 3


def agreeing(moment: Moment, where: tuple[int, int] | None = None) -> int:
    """Count the agreeing deals; with `where`, a seat and a card, those in which that seat holds it."""
    others = tuple(seat for seat in range(4) if seat != moment.seat)
    named = where[1] // 10 if where is not None else 0
    rest = _together(moment, others, tuple(suit for suit in range(4) if suit != named))
    totals = _added(moment, others, rest, _shares(moment, others, named, where))
    return sum(
        number for share, number in totals.items() if not moment.accusi or _declared_alike(moment, others, share)
    )


@lru_cache(64)
def _together(moment: Moment, others: tuple[int, ...], suits: tuple[int, ...]) -> Counter[Share]:
    """Combine the distributions of several suits, which are independent."""
    if not suits:
        return Counter({tuple((0, frozenset[int]()) for _ in others): 1})
    before = _together(moment, others, suits[:-1])
    return _added(moment, others, before, _shares(moment, others, suits[-1], None))


def _added(moment: Moment, others: tuple[int, ...], before: Counter[Share], suit: Counter[Share]) -> Counter[Share]:
    most, grown = [len(moment.hands[seat]) for seat in others], Counter[Share]()
    for share, ways in suit.items():
        for rest, number in before.items():
            after = tuple((n + m, x | y) for (n, x), (m, y) in zip(rest, share, strict=True))
            if all(n <= limit for limit, (n, _) in zip(most, after, strict=True)):
                grown[after if moment.accusi else tuple((n, frozenset()) for n, _ in after)] += ways * number
    return grown


@lru_cache(64)
def _shares(moment: Moment, others: tuple[int, ...], suit: int, where: tuple[int, int] | None) -> Counter[Share]:
    shares = Counter({tuple((0, frozenset[int]()) for _ in others): 1})
    for card in sorted(card for seat in others for card in moment.hands[seat] if card // 10 == suit):
        grown: Counter[Share] = Counter()
        for k, seat in enumerate(others):
            if where is not None and card == where[1] and seat != where[0]:
                continue
            if moment.four_of_denari and card == 0 and seat != moment.opener:
                continue
            for share, number in shares.items():
                count, high = share[k]
                held = (count + 1, high | ({card} if NAMES[card % 10] in "A23" else frozenset()))
                grown[(*share[:k], held, *share[k + 1 :])] += number
        shares = grown
    talk = list(_talk(moment))
    fitting = [s for s in shares if all(_fits(talk, seat, suit, *s[k]) for k, seat in enumerate(others))]
    return Counter({share: shares[share] for share in fitting})


def _fits(talk: list[tuple[int, int, int, str | None]], seat: int, suit: int, count: int, high: frozenset[int]) -> bool:
    """Return whether `count` cards of a suit agree with the seat's plays and signals in it, backwards in time."""
    bussi = len([card for card in high if NAMES[card % 10] in "23"])
    for who, card, led, word in reversed(talk):
        if who != seat:
            continue
        heard = "busso" if bussi else "striscio" if count else "volo"
        if led == suit and (word not in (None, heard) or (card // 10 != led and count)):
            return False
        if card // 10 == suit:
            count += 1
            bussi += NAMES[card % 10] in "23"
    return True


def _talk(moment: Moment) -> Iterator[tuple[int, int, int, str | None]]:
    """Yield seat, card and suit led of each play, and the leaders' signals."""
    word, number, led = None, 0, 0
    for entry in moment.seen(moment.dealt) or []:
        if isinstance(entry, str):
            word = entry
        elif isinstance(entry, tuple):
            who, card = entry
            led = led if number % 4 else card // 10
            yield who, card, led, word
            word, number = None, number + 1


def _declared_alike(moment: Moment, others: tuple[int, ...], share: Share) -> bool:
    played = moment.played
    return all(
        declared(set(high) | played[seat]) == declared(set(moment.dealt[seat]))
        for seat, (_, high) in zip(others, share, strict=True)
        if played[seat]
    )
