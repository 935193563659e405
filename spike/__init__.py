"""Corellian Spike: two to eight seats play for credits and a sum as close to zero as possible."""

from collections.abc import Mapping
from typing import Any

from busso.cards.game import Game, PlayerKind
from busso.cards.players import SampleOptions
from busso.spike.cards import ACTIONS, action_text
from busso.spike.numbering import numbering
from busso.spike.observation import BITS
from busso.spike.policies import POLICIES
from busso.spike.records import read, record
from busso.spike.rules import REWARDS, RULES
from busso.spike.search import SpikeSearchOptions, monte_carlo, network_search
from busso.spike.state import Options, blank


def _varying(options: Options) -> Mapping[str, Any]:
    blank(options)  # raises for bad options: too few seats, or more than fit into memory
    return {
        "seats": options.seats,
        "teams": tuple((seat,) for seat in range(options.seats)),
        # Credits left in the second pot after the last hand belong to nobody.
        "total": None if options.sabacc_pot else 0.0,
    }


GAME = Game(
    name="spike",
    blank_for=blank,
    options=Options(),
    rules=RULES,
    seats=Options.seats,
    teams=((0,), (1,)),
    actions=ACTIONS,
    bits=BITS,
    seats_taken="players",
    unit="credits",
    total=0.0,
    rewards=REWARDS,
    policies=POLICIES,
    kinds={
        "monte_carlo": PlayerKind(SampleOptions, monte_carlo, values=True),
        "search": PlayerKind(SpikeSearchOptions, network_search, values=True, of_network=True),
    },
    action_text=action_text,
    varying=_varying,
    record=record,
    read=read,
    numbering=numbering,
)
