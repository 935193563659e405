"""Blackjack: one player against the dealer; exact values are computable."""

from busso.blackjack import rules
from busso.blackjack.model import model
from busso.blackjack.rules import apply, by_value, deal, hit_below_14, hit_below_17, observe, returns
from busso.cards.multisets import legal, over
from busso.cards.own.game import game

GAME = game(
    rules.STATE, deal, legal, apply, observe, over, returns,
    actions=rules.ACTION_TEXT, sees=rules.SEES, name="blackjack", seats=1, unit="wins",
    options=rules.Options, put_options=rules.put_options,
    rewards={"value": by_value}, policies=[hit_below_14, hit_below_17],
    record=rules.record, read=rules.read, presentation=rules.PRESENTATION, model=model,
)  # fmt: skip
