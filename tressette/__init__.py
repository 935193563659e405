"""Tressette: a trick-taking game for four seats in two teams."""

from collections.abc import Mapping
from typing import Any

from busso.cards.game import Game, MatchRules, PlayerKind
from busso.cards.players import SampleOptions
from busso.tressette.cards import CARDS, card_text
from busso.tressette.observation import BITS, BITS_WITH_ACCUSI, symmetry
from busso.tressette.policies import POLICIES
from busso.tressette.records import in_match, read, record
from busso.tressette.rules import POINTS, REWARDS, RULES, SEATS, Options, blank, lead_next, match_score, opener
from busso.tressette.search import endgame, monte_carlo
from busso.tressette.search.network_search import TressetteSearchOptions, cheating_search, network_search


def _varying(options: Options) -> Mapping[str, Any]:
    return {"bits": BITS_WITH_ACCUSI if options.accusi else BITS, "symmetry": symmetry(options.accusi)}


GAME = Game(
    name="tressette",
    blank_for=blank,
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
    kinds={
        "monte_carlo": PlayerKind(SampleOptions, monte_carlo.make, values=True),
        "cheating": PlayerKind(endgame.CheatingOptions, endgame.make_cheating),
        "cheating_search": PlayerKind(None, cheating_search, of_network=True),
        "search": PlayerKind(TressetteSearchOptions, network_search, values=True, of_network=True),
    },
    symmetry=symmetry(accusi=False),
    additions=("accusi",),
    varying=_varying,
    action_text=card_text,
    record=record,
    read=read,
    match=MatchRules((11, 21, 31, 41), match_score, opener, lead_next, in_match, flags=("accusi",)),
)
