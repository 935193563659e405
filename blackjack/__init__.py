"""Blackjack: one player against the dealer; its exact values can be computed."""

from blackjack.model import model
from blackjack.observation import BITS
from blackjack.players import POLICIES
from blackjack.records import read, record
from blackjack.rewards import REWARDS
from blackjack.rules import ACTION_TEXT, RULES, Options, blank
from cards.game import Game

GAME = Game(
    name="blackjack",
    blank_for=blank,
    options=Options(),
    rules=RULES,
    seats=1,
    teams=((0,),),
    actions=len(ACTION_TEXT),
    bits=BITS,
    unit="wins",
    total=None,
    worst=-1.0,
    rewards=REWARDS,
    policies=POLICIES,
    action_text=ACTION_TEXT.__getitem__,
    record=record,
    read=read,
    model=model,
)
