"""Stable tools for a game, player, network or loss in one file: `from busso.kit import ...`."""

from busso.cards.compiled.bits import bit, has, highest, lowest, nth_bit, popcount, put, put_thermometer
from busso.cards.compiled.jit import njit
from busso.cards.compiled.splitmix import GAMMA, below, mix, shuffle, uniform
from busso.cards.compiled.tricks import RANKS, following, suit_of, taker, taker_with_trumps
from busso.cards.own.game import game, variant
from busso.cards.own.layout import Layout, number, table_of

__all__ = [
    "GAMMA",
    "RANKS",
    "Layout",
    "below",
    "bit",
    "following",
    "game",
    "has",
    "highest",
    "lowest",
    "mix",
    "njit",
    "nth_bit",
    "number",
    "popcount",
    "put",
    "put_thermometer",
    "shuffle",
    "suit_of",
    "table_of",
    "taker",
    "taker_with_trumps",
    "uniform",
    "variant",
]
