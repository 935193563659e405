"""Tressette: four seats, two teams, tricks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from cards.game import Game
from tressette.cards import CARDS, card_text
from tressette.observation import BITS
from tressette.players import POLICIES
from tressette.records import record, replay
from tressette.rewards import REWARDS
from tressette.rules import POINTS, RULES, SEATS, Options, blank


def _configure(options: Mapping[str, Any]) -> Game:
    chosen = Options(**options)
    return replace(GAME, options=chosen, blank=blank(chosen))


GAME = Game(
    name="tressette",
    blank=blank(Options()),
    options=Options(),
    rules=RULES,
    seats=SEATS,
    teams=((0, 2), (1, 3)),
    actions=CARDS,
    bits=BITS,
    unit="points",
    total=2.0 * POINTS,
    rewards=REWARDS,
    policies=POLICIES,
    action_text=card_text,
    configure_options=_configure,
    replay=replay,
    record=record,
)
