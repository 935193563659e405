"""Sette e mezzo: one player against an opponent with a fixed rule; exact values are computable."""

from busso.cards.multisets import legal, over
from busso.cards.own.game import game
from busso.sette_mezzo import rules
from busso.sette_mezzo.model import model
from busso.sette_mezzo.rules import apply, beat_the_card, by_study, by_value, deal, hit_below_5, observe, returns

GAME = game(
    rules.STATE, deal, legal, apply, observe, over, returns,
    actions=rules.ACTION_TEXT, sees=rules.SEES, name="sette_mezzo", seats=1, unit="wins", options=rules.Options,
    rewards={"value": by_value, "study": by_study}, policies=[hit_below_5, beat_the_card],
    record=rules.record, read=rules.read, presentation=rules.PRESENTATION, model=model,
)  # fmt: skip
