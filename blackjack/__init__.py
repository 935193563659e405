"""Blackjack: one player against the dealer; exact values are computable."""

from busso.blackjack.model import model
from busso.blackjack.rules import ACTION_TEXT, BITS, POLICIES, REWARDS, RULES, Options, blank, read, record
from busso.cards.game import Game

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
    rewards=REWARDS,
    policies=POLICIES,
    action_text=ACTION_TEXT.__getitem__,
    record=record,
    read=read,
    model=model,
)
