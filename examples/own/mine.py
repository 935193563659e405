"""Custom players: a class, two functions of one seat's view, and a compiled rule."""

import numpy as np

from busso.kit import lowest, njit


class Lowest:
    """Player that decides for many games at once: the legal action at index `depth`, or the last one."""

    def __init__(self, game, depth: int = 0):
        self.game, self.depth = game, depth

    def begin(self, seeds):
        """Start a batch of games, with one seed per game."""

    def act(self, decisions):
        """Return one action per decision: `legal` are bit masks, `observation` packed bits."""
        return np.array([self.choice(mask) for mask in decisions.legal.tolist()], np.uint8)

    def choice(self, mask):
        """Return the card for one mask."""
        cards = [card for card in range(self.game.actions) if mask >> card & 1]
        return cards[min(self.depth, len(cards) - 1)]


def thrifty(seen):
    """Take a trick with the weakest card that does, else play the lowest. `seen.hand` is a list of numbers."""
    taking = [card for card in seen.legal if seen.table and card > seen.table[0]]
    return min(taking or seen.legal)


def chance(seen):
    """Play any legal action; `seen.random` follows from the seed of the game."""
    return seen.random.choice(seen.legal)


@njit
def first(state, random_bits):
    """Play by a compiled rule, from a state and 64 random bits, as fast as busso's own players."""
    return lowest(state.hands[state.turn]) if state.led == 255 else lowest(legal_of(state))


@njit
def legal_of(state):
    """Return the cards of the suit led, or all if there are none."""
    hand = state.hands[state.turn]
    following = hand & (np.uint64(31) << np.uint64(state.led // 5 * 5))
    return following if following else hand
