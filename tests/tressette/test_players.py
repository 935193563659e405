"""Players of Tressette without a network: every branch of their descriptions; see also the conformance kit."""

from collections.abc import Callable

import numpy as np
import pytest

from busso.cards.game import States
from busso.tressette.cards import card_text
from busso.tressette.policies import greedy, study_heuristic
from tests.tressette.table import table


def choice(policy: Callable[..., int], states: States) -> str:
    return card_text(policy(states[0], np.uint64(0)))


def lead(policy: Callable[..., int], hand: str, gone: str = "", signals: str = "") -> str:
    """Return the card with which seat 0 opens a trick."""
    return choice(policy, table([hand, "", "", ""], gone=gone, signals=signals))


def answer(policy: Callable[..., int], trick: str, hand: str, gone: str = "", voids: str = "") -> str:
    """Return the card with which the next seat follows in a trick opened by seat 0."""
    hands = [*trick.split(), hand, "", "", ""][:4]
    return choice(policy, table(hands, plays=trick, gone=gone, voids=voids))


@pytest.mark.parametrize(
    "hand, gone, expected",
    [
        ("3D 4C 5C 6C", "", "3D"),  # nothing beats a 3
        ("2D 4C 5C 6C", "", "4C"),  # the 3 of denari is still out
        ("2D 4C 5C 6C", "3D", "2D"),  # now nothing beats the 2
        ("3D 2D AD 4C", "", "AD"),  # all three are safe, the ace is worth most
        ("3D 2D 4C 5C", "", "2D"),  # both are safe and worth a third, the 2 is the weaker
        ("3D AD 4C", "", "3D"),  # the ace is not safe while the 2 is out
        ("7D 4C", "FD CD RD AD 2D 3D", "7D"),  # safe though worthless
        ("3D 3C", "", "3D"),  # equal: the first suit
    ],
)
def test_greedy_leads_what_cannot_be_beaten(hand: str, gone: str, expected: str) -> None:
    assert lead(greedy, hand, gone) == expected


@pytest.mark.parametrize(
    "hand, expected",
    [
        ("4D 5C 6C 7S", "5C"),  # the weakest card of the longest suit
        ("7D 6D FC CC RC", "6D"),  # coppe is longer but has no worthless card
        ("FC 7C 5D", "7C"),  # worth counts before strength: not the jack
        ("7C 4S", "7C"),  # suits of equal length: the first
    ],
)
def test_greedy_else_leads_a_worthless_card(hand: str, expected: str) -> None:
    assert lead(greedy, hand) == expected


@pytest.mark.parametrize("hand, expected", [("RC FC AD", "FC"), ("AD AC 2S", "2S"), ("AD AC", "AD")])
def test_greedy_without_worthless_cards_leads_the_least_valuable(hand: str, expected: str) -> None:
    assert lead(greedy, hand) == expected


@pytest.mark.parametrize(
    "trick, hand, gone, voids, expected",
    [
        ("3D 4D", "5D AD RD", "", "", "AD"),  # the partner's 3 stands against the last seat
        ("3D 4D", "AC 4S 3B", "", "", "AC"),  # also without a card of the suit
        ("3D 4D", "FC 2S 3B", "", "", "FC"),  # all worth a third: the weakest
        ("RD 4D", "5D AD", "", "", "5D"),  # the king may still be beaten
        ("RD 4D", "5D FD", "AD 2D 3D", "", "FD"),  # it can no longer be beaten
        ("RD 4D", "5D AD", "2D 3D", "", "AD"),  # the ace that could beat it is in this hand
        ("RD 4D", "5D AD", "", "3D", "AD"),  # the last seat is void in denari
        ("RD 4D", "5D AD", "", "3C", "5D"),  # a void in coppe does not matter
        ("4D RD 5D", "6D AD", "", "", "AD"),  # last seat to play
        ("4D RD AC", "AS 4B", "", "", "AS"),  # last seat to play, and void
    ],
)
def test_greedy_feeds_a_partner_who_surely_wins(trick: str, hand: str, gone: str, voids: str, expected: str) -> None:
    assert answer(greedy, trick, hand, gone, voids) == expected


@pytest.mark.parametrize(
    "trick, hand, gone, voids, expected",
    [
        ("FD 4D RD", "5D AD 2D 3D", "", "", "AD"),  # the last seat takes with the weakest sufficient card
        ("FD 4D 5D", "6D CD RD", "", "", "CD"),
        ("4D", "5D 3D", "", "", "3D"),  # only the best card takes for certain
        ("4D", "5D 2D", "", "", "5D"),  # not for certain: the 3 is out
        ("4D", "6D 2D", "3D", "", "2D"),
        ("4D", "5D 6D 3D", "", "2D", "5D"),  # the other opponent is void in denari; the partner does not matter
        ("4D", "5D 6D 3D", "", "3D", "3D"),  # the partner's void does not help
        ("RD 4D", "5D 3D", "", "", "3D"),  # the partner's card may be beaten, the 3 cannot
        ("4D 6D", "5D 3D 2D", "", "", "2D"),  # with the 3 in hand, the 2 is certain too
    ],
)
def test_greedy_takes_when_it_is_certain(trick: str, hand: str, gone: str, voids: str, expected: str) -> None:
    assert answer(greedy, trick, hand, gone, voids) == expected


@pytest.mark.parametrize(
    "trick, hand, expected",
    [
        ("3D 4D 5D", "AD RD FD 6D", "6D"),  # cannot take: the least valuable card of the suit
        ("3D 4D 5D", "AD 2D RD", "RD"),  # a third each, the king is weaker
        ("3D 4D 5D", "AD", "AD"),
        ("4D", "AC 2S 7B 4S", "4S"),  # void: worthless and weakest
        ("4D", "AC 5S 5B", "5S"),  # equal: the first suit
    ],
)
def test_greedy_else_throws_the_least_valuable_card(trick: str, hand: str, expected: str) -> None:
    assert answer(greedy, trick, hand) == expected


@pytest.mark.parametrize(
    "signals, expected",
    [
        ("2C:busso", "5C"),
        ("2C:striscio", "5C"),
        ("2S:striscio 2C:busso", "5C"),  # the first suit
        ("2D:busso 2S:busso", "4S"),  # no denari in hand
        ("2C:volo", "CB"),  # not an invitation
        ("1C:busso 3S:busso", "CB"),  # the opponents'
        ("0C:busso", "CB"),  # its own
    ],
)
def test_seed_heuristic_follows_the_partners_signal(signals: str, expected: str) -> None:
    assert lead(study_heuristic, "5C 7C 4S RB CB", signals=signals) == expected


@pytest.mark.parametrize(
    "hand, expected",
    [
        ("3D 2D 5D 4C 7C", "4C"),  # 10 against 11: first card of the suit
        ("RD 4C 5C", "RD"),  # 10 against 9 by the printed values
        ("5D 5C", "5D"),  # equal: the first suit
        ("AD 2D 3D", "AD"),  # the ace with 2 and 3
        ("AD 2D 3D RD 2C 4C", "AD"),  # before a 2 with one other card
        ("AD 3D CD", "CD"),  # without the 2 not the ace, but the first card
        ("AD 2D FD", "FD"),
        ("AD 2D 4C 5C 6C", "2D"),  # a 2 with exactly one other card of its suit, whatever suit is strongest
        ("2D 4C 5C 6C", "4C"),  # a 2 with none
        ("AD FD", "FD"),
        ("AD AC", "AD"),  # bare aces: the first of the first suit
    ],
)
def test_seed_heuristic_leads_the_suit_of_the_greatest_sum(hand: str, expected: str) -> None:
    assert lead(study_heuristic, hand) == expected


@pytest.mark.parametrize(
    "trick, hand, expected",
    [("4D", "3D 5D 4C", "5D"), ("4D", "3S 4B AC", "AC"), ("4D 5D 6D", "2D 3D 4C", "2D")],
)
def test_seed_heuristic_answers_with_the_first_legal_card(trick: str, hand: str, expected: str) -> None:
    assert answer(study_heuristic, trick, hand) == expected
