"""Duels in games of one seat: both players get the same deals, and their results are compared."""

import numpy as np
import pytest

from busso.cards.compiled.splitmix import stream
from busso.cards.game import load_game
from busso.cards.matches.duplicate import duel, seatings
from busso.cards.play import play
from busso.cards.players import named_player


def test_each_player_plays_every_deal_once() -> None:
    assert seatings(load_game("blackjack")).tolist() == [[0], [1]]


@pytest.mark.parametrize(("name", "first"), [("blackjack", "hit_below_17"), ("sette_mezzo", "hit_below_5")])
def test_duel_compares_what_each_makes_of_the_same_deals(name: str, first: str) -> None:
    game, seeds = load_game(name), stream(1, "duel", 0, 3000)
    players = [named_player(game, first), named_player(game, "random")]
    found = duel(game, players[0], players[1], seeds)
    alone = []
    for index in (0, 1):
        # The generators of a player depend on its index, so `play` gets both.
        states, _ = play(game, seeds, players, np.full((seeds.size, 1), index, np.uint8))
        alone.append(game.returns(states)[:, 0])
    assert (found.own == alone[0]).all() and (found.other == alone[1]).all()
    assert (found.wins == (np.sign(alone[0] - alone[1]) + 1) / 2).all()
    assert found.points.mean == pytest.approx(float((alone[0] - alone[1]).mean()))
    assert found.win_rate.mean > 0.5


def test_a_player_against_itself_ties_every_deal() -> None:
    game = load_game("blackjack")
    player = named_player(game, "hit_below_14")
    found = duel(game, player, player, stream(1, "duel", 0, 500))
    assert (found.wins == 0.5).all() and (found.own == found.other).all()
