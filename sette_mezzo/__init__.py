"""Sette e mezzo: one player against an opponent with a fixed rule; its exact values can be computed."""

from cards.game import Game
from sette_mezzo.model import model
from sette_mezzo.observation import BITS
from sette_mezzo.players import POLICIES
from sette_mezzo.records import read, record
from sette_mezzo.rewards import REWARDS
from sette_mezzo.rules import ACTION_TEXT, RULES, Options, blank

GAME = Game(
    name="sette_mezzo",
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
