"""Engine of Briscola against the second implementation, move by move over random games."""

import numpy as np

from busso.cards.compiled.batch import reward_loop
from busso.cards.compiled.bits import unpack
from busso.cards.compiled.splitmix import stream
from busso.cards.game import States
from tests.briscola import CARD_TEXT, GAME
from tests.briscola.reference import DECK, Table

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
