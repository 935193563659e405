"""Hands of Tressette as readable text; see `tests.golden.transcripts`."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from busso.cards.compiled.bits import unpack
from busso.cards.game import States, load_game
from busso.cards.play import Decisions, play
from busso.cards.players import named_player
from busso.tressette import observation
from busso.tressette.accusi import ACCUSI
from busso.tressette.cards import CARDS, RANKS, SUIT_NAMES, SUITS, card_text
from busso.tressette.rules import declared_points, legal, points, winning_seat

RELATIVE = ("own", "next", "partner", "previous")
SIGNALS = ("busso", "striscio", "volo")


DECLARATIONS = [f"napoletana in {suit}" for suit in SUIT_NAMES]
for rank in ("aces", "twos", "threes"):
    DECLARATIONS += [f"three {rank} without {suit}" for suit in SUIT_NAMES] + [f"four {rank}"]


class Script(NamedTuple):
    """A hand to write down: seed, options, and who plays in seats 0 to 3."""

    seed: int
    options: dict[str, Any]
    players: tuple[str, str, str, str]


SCRIPTS = {
    "random": Script(1, {}, ("random",) * 4),
    "greedy_against_random": Script(2, {}, ("greedy", "random") * 2),
    "signals": Script(3, {"signals": True, "first_leader": "four_of_denari"}, ("study_heuristic", "greedy") * 2),
    "accusi": Script(2042, {"accusi": True}, ("greedy",) * 4),
}


def transcript(script: Script) -> str:
    """One hand: what was dealt, each play with the legal cards and what its seat knew, each trick, and the points."""
    game = load_game("tressette", script.options)
    players = [named_player(game, name) for name in script.players]
    lines: list[str] = []

    def watch(decisions: Decisions, actions: NDArray[np.uint8], totals: Any) -> None:
        states = decisions.states
        if not lines:
            lines.extend(_deal(script, states[0]))
        lines.extend(_play(states, int(actions[0]), game.observe(states)))

    seats = np.arange(4, dtype=np.uint8)[None]
    final, _ = play(game, np.array([script.seed], np.uint64), players, seats, watch=watch)
    return "\n".join([*lines, "", *_end(final[0])]) + "\n"


def _deal(script: Script, state: np.void) -> Iterator[str]:
    yield f"seed {script.seed}, options {script.options or 'as they come'}"
    for seat in range(4):
        yield f"seat {seat} ({script.players[seat]}): {_cards(int(state['hands'][seat]))}"
    yield f"seat {state['leader']} leads"


def _play(states: States, action: int, seen: NDArray[np.uint64]) -> Iterator[str]:
    state = states[0]
    seat = int(state["turn"])
    if seat == state["leader"]:
        yield ""
        yield f"trick {state['plays'] // 4 + 1}: thirds {_pair(state['thirds'])}, tricks {_pair(state['tricks'])}"
    yield f"  seat {seat} plays {card_text(action)} of {_cards(int(legal(state)))}"
    accusi = bool(state["with_accusi"])
    bits = observation.BITS_WITH_ACCUSI if accusi else observation.BITS
    yield from (f"      {line}" for line in knowledge(unpack(seen, bits)[0], accusi))
    if state["plays"] % 4 == 3:
        closed = states.copy()
        closed[0]["trick"][seat] = action
        yield f"  seat {winning_seat(closed[0])} takes the trick"


def knowledge(bits: NDArray[np.float32], accusi: bool) -> Iterator[str]:
    """What an observation says, in words; nothing of what is empty."""
    own = [int(bit) for bit in bits]
    yield f"hand {_listed(own[observation.HAND : observation.TRICK])}"
    for k, whose in enumerate(RELATIVE):
        played = own[observation.PLAYED + CARDS * k :][:CARDS]
        lying = own[observation.TRICK + CARDS * (k - 1) :][:CARDS] if k else []
        voids = own[observation.VOIDS + SUITS * k :][:SUITS]
        said = own[observation.SIGNALS + 12 * k :][:12]
        words = [f"played {_listed(played)}"] if any(played) else []
        words += [f"lies {_listed(lying)}"] if any(lying) else []
        words += [f"no {SUIT_NAMES[suit]}" for suit in range(SUITS) if voids[suit]]
        words += [f"{SIGNALS[i % 3]} in {SUIT_NAMES[i // 3]}" for i in range(12) if said[i]]
        led, strayed = (own[start + CARDS * k :][:CARDS] for start in (observation.LED, observation.STRAYED))
        words += [f"led {_listed(led)}"] if any(led) else []
        words += [f"could not follow with {_listed(strayed)}"] if any(strayed) else []
        declared = own[observation.DECLARED + ACCUSI * k :][:ACCUSI] if accusi else []
        words += [f"declared {what}" for what, bit in zip(DECLARATIONS, declared, strict=False) if bit]
        if words:
            yield f"{whose}: {'; '.join(words)}"
    thirds = [sum(own[start:][:32]) for start in (observation.OWN_THIRDS, observation.OTHER_THIRDS)]
    trick = own[observation.TRICK_NUMBER : observation.LEADER].index(1) + 1
    leader = RELATIVE[own[observation.LEADER : observation.LED].index(1)]
    yield f"thirds {_pair(thirds)} (own, other); trick {trick}; leader: {leader}"
    taking = own[observation.TAKING : observation.ON_TABLE]
    if any(taking):
        beating, table = _listed(own[observation.BEATING :][:CARDS]), sum(own[observation.ON_TABLE :][:12])
        yield f"takes the trick: {RELATIVE[taking.index(1)]}, with {table} thirds; beaten by own {beating}"
    unbeaten, highest = (_listed(own[start:][:CARDS]) for start in (observation.UNBEATEN, observation.HIGHEST))
    yield f"own cards that nobody beats {unbeaten}; highest of others {highest}"


def _end(state: np.void) -> Iterator[str]:
    yield f"thirds {_pair(state['thirds'])}, last trick to team {int(state['last_taker']) % 2}"
    yield f"points {_pair([points(state, team) for team in (0, 1)])}"
    if state["with_accusi"]:
        yield f"accusi {_pair([declared_points(state, team) for team in (0, 1)])}"


def _pair(both: Any) -> str:
    return f"{int(both[0])} : {int(both[1])}"


def _cards(cards: int) -> str:
    return _listed([cards >> card & 1 for card in range(CARDS)])


def _listed(cards: list[int]) -> str:
    """Cards by suit, from the weakest up, suits apart by a wider space."""
    suits = [[card_text(c) for c in range(RANKS * s, RANKS * (s + 1)) if cards[c]] for s in range(SUITS)]
    return "  ".join(" ".join(suit) for suit in suits if suit) or "nothing"
