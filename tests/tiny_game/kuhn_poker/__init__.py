"""Kuhn poker: two seats, three cards, one bet. Its value is known exactly: seat 0 loses 1/18 of a chip a game."""

from kuhn_poker.observation import BITS
from kuhn_poker.players import POLICIES
from kuhn_poker.records import read, record
from kuhn_poker.rewards import REWARDS
from kuhn_poker.rules import ACTION_TEXT, RULES, Options, blank

from busso.cards.game import Game

GAME = Game(
    name="kuhn_poker",
    blank_for=blank,
    options=Options(),
    rules=RULES,
    seats=2,
    teams=((0,), (1,)),
    actions=len(ACTION_TEXT),
    bits=BITS,
    unit="chips",
    total=0.0,
    rewards=REWARDS,
    policies=POLICIES,
    action_text=ACTION_TEXT.__getitem__,
    record=record,
    read=read,
)
