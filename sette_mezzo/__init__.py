"""Sette e mezzo: one player against an opponent with a fixed rule; exact values are computable."""

from busso.cards.game import Game
from busso.sette_mezzo.model import model
from busso.sette_mezzo.observation import BITS
from busso.sette_mezzo.players import POLICIES
from busso.sette_mezzo.records import read, record
from busso.sette_mezzo.rewards import REWARDS
from busso.sette_mezzo.rules import ACTION_TEXT, RULES, Options, blank

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
    rewards=REWARDS,
    policies=POLICIES,
    action_text=ACTION_TEXT.__getitem__,
    record=record,
    read=read,
    model=model,
)
