"""Players of one's own: a class, a function of what one seat sees, and a compiled rule."""

import numpy as np

from busso.kit import lowest, njit


class Lowest:
    """Decides for many games at once: the legal action at place `depth`, or the last one."""

    def __init__(self, game, depth: int = 0):
        self.game, self.depth = game, depth

    def begin(self, seeds):
        """A batch of games starts; `seeds` has one of each."""

    def act(self, decisions):
        """Return one action for each decision: `legal` are bit masks, `observation` packed bits."""
        return np.array([self.choice(mask) for mask in decisions.legal.tolist()], np.uint8)

    def choice(self, mask):
        """The card for one mask."""
        cards = [card for card in range(self.game.actions) if mask >> card & 1]
        return cards[min(self.depth, len(cards) - 1)]


def thrifty(seen):
    """Takes a trick with the weakest card that does, else plays the lowest. `seen.hand` is a list of numbers."""
    taking = [card for card in seen.legal if seen.table and card > seen.table[0]]
    return min(taking or seen.legal)


def chance(seen):
    """Any legal action; `seen.random` follows from the seed of the game."""
    return seen.random.choice(seen.legal)


@njit
def first(state, random_bits):
    """Compiled: from a state and 64 random bits; as fast as the players of busso."""
    return lowest(state.hands[state.turn]) if state.led == 255 else lowest(legal_of(state))


@njit
def legal_of(state):
    """The cards of the suit led, or all."""
    hand = state.hands[state.turn]
    following = hand & (np.uint64(31) << np.uint64(state.led // 5 * 5))
    return following if following else hand
