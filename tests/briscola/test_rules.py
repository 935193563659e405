"""Rules of Briscola worked by hand, against a second implementation, and by the conformance kit."""

from collections.abc import Callable

import numpy as np
import pytest

from busso.cards.compiled.batch import reward_loop
from busso.cards.compiled.bits import unpack
from busso.cards.compiled.splitmix import stream
from busso.cards.conformance import CHECKS, Case
from busso.cards.game import States
from tests.briscola import CARD_TEXT, GAME
from tests.briscola.hidden import reshuffle_hidden
from tests.briscola.reference import DECK, Table


def table(first: str, second: str, plays: str) -> States:
    """Return a game with these three-card hands of seats 0 and 1, bastoni as trumps, and these cards played."""
    dealt = [*first.split(), *second.split()]
    rest = [card for card in CARD_TEXT if card not in (*dealt, "2B")]
    states = GAME.deal(np.zeros(1, np.uint64))
    states[0]["deck"] = [CARD_TEXT.index(card) for card in (*dealt, *rest, "2B")]
    states[0]["hands"] = [sum(1 << CARD_TEXT.index(card) for card in hand.split()) for hand in (first, second)]
    for card in plays.split():
        GAME.apply(states, np.array([CARD_TEXT.index(card)], np.uint8))
    return states


@pytest.mark.parametrize(
    ("plays", "winner", "points"),
    [
        ("3D AD", 1, 21),  # the ace beats the three, the three beats the king
        ("3D RD", 0, 14),
        ("AD 2S", 0, 11),  # another suit loses
        ("3D 4B", 1, 10),  # the lowest trump beats all other suits
        ("5B 4B", 0, 0),  # the higher trump wins
        ("5B AD", 0, 11),
        ("2D FD", 1, 2),
        ("4D CS", 0, 3),
    ],
)
def test_who_takes_a_trick_and_what_it_counts(plays: str, winner: int, points: int) -> None:
    led, answer = plays.split()
    state = table(f"{led} 6C 7C", f"{answer} 6S 7S", plays)[0]
    assert (state["turn"], state["leader"], state["points"][winner]) == (winner, winner, points)
    assert state["points"][1 - winner] == 0


@pytest.mark.parametrize(
    ("first", "second", "plays", "card"),
    [
        ("AD 4S 2C", "2D 5S 6S", "", "2C"),  # leads the least valuable card; of 2C and 4S the weaker
        ("AD CC 5B", "2D 5S 6S", "", "CC"),  # a knight, 3 points, rather than a trump
        ("AD RC 5B", "2D 5S 6S", "", "5B"),  # a trump rather than a king: both cost 4, and the trump is weaker
        ("2D 4S 2C", "3D 5S 5B", "2D", "3D"),  # takes with the three: 10 points
        ("AD 4S 2C", "FC 5S 5B", "AD", "5B"),  # takes an ace with the lowest trump
        ("FD 4S 2C", "6C 5S 5B", "FD", "5S"),  # no trump for two points
        ("2D 4S 2C", "AC 5S 5B", "2D", "5S"),  # gives away nothing
    ],
)
def test_greedy(first: str, second: str, plays: str, card: str) -> None:
    chosen = GAME.policies["greedy"](table(first, second, plays)[0], np.uint64(0))
    assert CARD_TEXT[chosen] == card


def test_deals_are_uniform() -> None:
    """Each card is at each place of the deck in one of 40 games (5 standard deviations)."""
    decks = GAME.deal(stream(9, "deals", 0, 40_000))["deck"]
    for place in (0, 5, 39):
        counts = np.bincount(decks[:, place], minlength=40)
        assert np.all(np.abs(counts - 1000) < 5 * np.sqrt(1000))


GAMES = 200


def expect_same(states: States, tables: list[Table]) -> None:
    legal, over = GAME.legal(states).tolist(), GAME.over(states).tolist()
    seen = [unpack(GAME.observe(states, seats=np.full(GAMES, seat, np.uint8)), GAME.bits) for seat in (0, 1)]
    for k, table in enumerate(tables):
        assert {DECK[card] for card in range(40) if legal[k] >> card & 1} == set(table.hands[table.turn])
        assert (over[k], states[k]["turn"]) == (table.over(), table.turn)
        assert states[k]["points"].tolist() == table.points()
        if k % 8 == 0:
            for seat in (0, 1):
                assert seen[seat][k].astype(bool).tolist() == table.observation(seat)


def test_every_move() -> None:
    assert CARD_TEXT == DECK
    random, everyone = np.random.default_rng(3), np.arange(GAMES)
    states = GAME.deal(stream(3, "reference", 0, GAMES))
    tables = [Table([DECK[card] for card in state["deck"]]) for state in states]
    totals = {name: np.zeros((GAMES, 2), np.float32) for name in GAME.rewards}
    for _ in range(40):
        expect_same(states, tables)
        cards = [str(random.choice(table.hands[table.turn])) for table in tables]
        actions = np.array([DECK.index(card) for card in cards], np.uint8)
        for name, reward in GAME.rewards.items():
            reward_loop(GAME.rules.apply, reward)(states.copy(), everyone, actions, totals[name])
        GAME.apply(states, actions)
        for table, card in zip(tables, cards, strict=True):
            table.play(card)
    expect_same(states, tables)
    points = np.array([table.points() for table in tables])
    assert GAME.returns(states).tolist() == points.tolist()
    difference = points[:, 0] - points[:, 1]
    assert np.allclose(totals["points"], np.stack([difference, -difference], 1) / 60, atol=1e-5)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_conformance(check: Callable[[Case], None]) -> None:
    check(Case(GAME, reshuffle_hidden))
