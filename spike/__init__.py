"""Corellian Spike: two to eight seats, credits, a sum as near to zero as can be."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from cards.game import Game
from spike.cards import ACTIONS, action_text
from spike.numbering import numbering
from spike.observation import BITS
from spike.players import POLICIES
from spike.records import record, replay
from spike.rewards import REWARDS
from spike.rules import RULES
from spike.state import Options, blank


def _configure(options: Mapping[str, Any]) -> Game:
    chosen = Options(**options)
    return replace(
        GAME,
        options=chosen,
        blank=blank(chosen),
        seats=chosen.seats,
        teams=tuple((seat,) for seat in range(chosen.seats)),
        # What lies in the second pot after the last hand belongs to nobody.
        total=None if chosen.sabacc_pot else 0.0,
    )


GAME = Game(
    name="spike",
    blank=blank(Options()),
    options=Options(),
    rules=RULES,
    seats=Options.seats,
    teams=((0,), (1,)),
    actions=ACTIONS,
    bits=BITS,
    unit="credits",
    total=0.0,
    rewards=REWARDS,
    policies=POLICIES,
    action_text=action_text,
    configure_options=_configure,
    replay=replay,
    record=record,
    numbering=numbering,
)
