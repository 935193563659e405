"""How many deals agree with what a seat knows, and how many have a card in a given hand: suit by suit, in Python.

Exact for positions too large to list. Each suit is shared out card by card, checked against all that was said and
played of it, and then added to the shares of the suits before, by the number of cards of each hand and, under accusi,
by which aces, twos and threes it has.
"""

from collections import Counter
from collections.abc import Iterator

from tests.tressette.search.table_talk import NAMES, Moment, declared

Share = tuple[tuple[int, frozenset[int]], ...]  # of each hidden seat: how many cards, and which A, 2 and 3


def agreeing(moment: Moment, where: tuple[int, int] | None = None) -> int:
    """How many deals agree; with `where`, a seat and a card, those in which that seat holds it."""
    others = [seat for seat in range(4) if seat != moment.seat]
    empty: Share = tuple((0, frozenset()) for _ in others)
    totals = Counter({empty: 1})
    for suit in range(4):
        grown: Counter[Share] = Counter()
        for share, ways in _shares(moment, others, suit, where).items():
            for before, number in totals.items():
                after = tuple((n + m, x | y) for (n, x), (m, y) in zip(before, share, strict=True))
                if all(n <= len(moment.hands()[seat]) for seat, (n, _) in zip(others, after, strict=True)):
                    grown[after if moment.accusi else tuple((n, frozenset()) for n, _ in after)] += ways * number
        totals = grown
    return sum(
        number for share, number in totals.items() if not moment.accusi or _declared_alike(moment, others, share)
    )


def _shares(moment: Moment, others: list[int], suit: int, where: tuple[int, int] | None) -> Counter[Share]:
    shares = Counter({tuple((0, frozenset[int]()) for _ in others): 1})
    for card in sorted(card for seat in others for card in moment.hands()[seat] if card // 10 == suit):
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
    """Whether so many cards of a suit agree with all that a seat has played and said of it: backwards in time."""
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
    """Who played which card when which suit was led, and what a leader said."""
    word, number, led = None, 0, 0
    for entry in moment.seen(moment.dealt) or []:
        if isinstance(entry, str):
            word = entry
        elif isinstance(entry, tuple):
            who, card = entry
            led = led if number % 4 else card // 10
            yield who, card, led, word
            word, number = None, number + 1


def _declared_alike(moment: Moment, others: list[int], share: Share) -> bool:
    played = moment.played()
    return all(
        declared(set(high) | played[seat]) == declared(set(moment.dealt[seat]))
        for seat, (_, high) in zip(others, share, strict=True)
        if played[seat]
    )
