"""What a seat of Kuhn poker cannot see: the card of the other."""

import numpy as np

from busso.cards.game import States


def reshuffle_hidden(states: States, seat: int, random: np.random.Generator) -> None:
    """Give the other seat any card but that of `seat`, in place."""
    own = states[0]["cards"][seat]
    states["cards"][0, 1 - seat] = random.choice([card for card in range(3) if card != own])
