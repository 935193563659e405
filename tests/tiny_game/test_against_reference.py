"""The engine against the second implementation, in every line of play of every deal; and the published value."""

from itertools import permutations, product

import numpy as np
import pytest

from busso.cards.compiled.bits import unpack
from busso.cards.compiled.splitmix import stream
from busso.cards.game import States, load_game
from busso.cards.play import play
from busso.cards.players import named_player
from tests.tiny_game import reference
from tests.tiny_game.test_rules import table

GAME = load_game("kuhn_poker")
SITUATIONS = {0: [(), ("pass", "bet")], 1: [("pass",), ("bet",)]}  # in which each seat decides
VALUE = -1 / 18  # of the first seat; Kuhn (1950)


def optimal(card: str, plays: tuple[str, ...]) -> float:
    """The probability to bet of the player `equilibrium`, from its description."""
    if plays and plays[-1] == "bet":
        return {"J": 0, "Q": 1 / 3, "K": 1}[card]
    return {"J": 1 / 3, "Q": 0, "K": 1}[card] if plays else 0


def lines(plays: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    """Every line of play, whole or not."""
    return [plays, *(line for more in reference.legal(plays) for line in lines((*plays, more)))]


@pytest.mark.parametrize("bet", [1, 3])
def test_every_line_of_every_deal(bet: int) -> None:
    game = GAME.configure({"bet": bet})
    assert len(lines()) == 9
    for cards, plays in product(permutations(reference.CARDS, 2), lines()):
        states: States = table("".join(cards), " ".join(plays), bet=bet)
        legal = [name for action, name in enumerate(("pass", "bet")) if int(game.legal(states)[0]) >> action & 1]
        assert legal == reference.legal(plays)
        assert bool(game.over(states)[0]) == (not legal)
        seen = unpack(game.observe(states.repeat(2), seats=np.array([0, 1], np.uint8)), game.bits).astype(bool)
        assert seen.tolist() == [reference.observation(cards, plays, seat) for seat in (0, 1)]
        if legal:
            assert states[0]["turn"] == reference.turn(plays)
        else:
            assert game.returns(states)[0].tolist() == reference.chips(cards, plays, bet)


def test_the_published_value() -> None:
    """The second implementation, exactly; and nothing that either seat could do instead would win it more."""
    assert reference.value(optimal, optimal) == pytest.approx(VALUE)
    for seat, choices in product((0, 1), product((0, 1), repeat=6)):
        keys = list(product(reference.CARDS, SITUATIONS[seat]))
        fixed = dict(zip(keys, choices, strict=True))

        def other(card: str, plays: tuple[str, ...], fixed: dict = fixed) -> float:
            return fixed[card, plays]

        if seat == 0:
            assert reference.value(other, optimal) <= VALUE + 1e-12
        else:
            assert reference.value(optimal, other) >= VALUE - 1e-12


def test_the_engine_has_that_value() -> None:
    """The mean of many games of the player `equilibrium` against itself, within 5 standard errors."""
    count = 200_000
    player = named_player(GAME, "equilibrium")
    final, _ = play(GAME, stream(3, "value", 0, count), [player], np.zeros((count, 2), np.uint8))
    won = GAME.returns(final)[:, 0]
    assert abs(won.mean() - VALUE) < 5 * won.std() / np.sqrt(count)
