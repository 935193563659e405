"""Briscola for two, a trick game with trumps, as a package outside of busso: see docs/howto/own_game.md."""

from briscola.observation import BITS
from briscola.players import POLICIES
from briscola.records import read, record
from briscola.rewards import REWARDS
from briscola.rules import CARD_TEXT, CARDS, POINTS, RULES, Options, blank
from busso.cards.game import Game

GAME = Game(
    name="briscola",
    blank_for=blank,
    options=Options(),
    rules=RULES,
    seats=2,
    teams=((0,), (1,)),
    actions=CARDS,
    bits=BITS,
    unit="points",
    total=float(POINTS),
    rewards=REWARDS,
    policies=POLICIES,
    action_text=CARD_TEXT.__getitem__,
    record=record,
    read=read,
)
