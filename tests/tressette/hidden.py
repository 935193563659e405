"""Cards hidden from a seat of Tressette, redealt consistently with its knowledge."""

from dataclasses import replace

import numpy as np

from busso.cards.game import States
from tests.tressette.search.table_talk import bits_of, moment_of

ATTEMPTS = 60


def reshuffle_hidden(states: States, seat: int, random: np.random.Generator) -> None:
    """Swap cards between the other three hands in place, consistently with the knowledge of `seat`."""
    state = states[0]
    state["random"] = random.integers(0, 2**64, dtype=np.uint64)
    moment = replace(moment_of(state), seat=seat)
    hands, others = [set(hand) for hand in moment.hands], [k for k in range(4) if k != seat]
    for first, step, mine, yours in random.integers(0, 2**32, (ATTEMPTS, 4)).tolist():
        one, other = others[first % 3], others[(first + 1 + step % 2) % 3]
        if not (hands[one] and hands[other]):
            continue
        swap = {sorted(hands[one])[mine % len(hands[one])], sorted(hands[other])[yours % len(hands[other])]}
        swapped = [hand ^ swap if k in (one, other) else hand for k, hand in enumerate(hands)]
        if moment.agrees(tuple(map(frozenset, swapped))):
            hands = swapped
    state["hands"] = bits_of(tuple(map(frozenset, hands)))


def declared(state: np.void, seat: int) -> set[str]:
    """Return the accusi of a seat, worded as in `tests.tressette.reference.accusi`."""
    bits = int(state["accusi"][seat])
    words = [f"napoletana {suit}" for suit in "DCSB"]
    for rank in "A23":
        words += [f"three {rank} without {suit}" for suit in "DCSB"] + [f"four {rank}"]
    return {word for k, word in enumerate(words) if bits >> k & 1}


def cards_of(hand: int) -> list[int]:
    return [card for card in range(40) if hand >> card & 1]
