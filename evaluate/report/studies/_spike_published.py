"""The published results of the study of Corellian Spike; our text about them is in spike.md."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

INTERMEDIATE = 25
RUNS = ("study_2p_credits", "study_2p_weighted", "study_4p_weighted")


@dataclass(frozen=True)
class Published:
    """What the study says of a pair; None where it does not say. Hands are shares of the hands played."""

    first_credits: float | None = None
    second_credits: float | None = None
    first_hands: float | None = None
    second_hands: float | None = None
    busts: tuple[int, int] | None = None


@dataclass(frozen=True)
class Pair:
    """A line of a table: who plays whom at how many seats."""

    first: str
    second: str
    seats: int
    published: Published


CREDITS, WEIGHTED, FOUR = RUNS
AGAINST_OTHERS = (
    Pair(CREDITS, "random", 2, Published(35.6, None, 0.90, None, (0, 499))),
    Pair(CREDITS, "initial", 2, Published(-2.4, None, 0.64, None, (17, 0))),
    Pair(CREDITS, f"{CREDITS}@{INTERMEDIATE}", 2, Published(1.0, None, 0.49)),
    Pair(CREDITS, "cautious", 2, Published()),
    Pair(WEIGHTED, "random", 2, Published(38.4, None, 0.95)),
    Pair(WEIGHTED, "initial", 2, Published(-0.1, None, 0.63)),
    Pair(WEIGHTED, f"{WEIGHTED}@{INTERMEDIATE}", 2, Published(-0.8, None, 0.49)),
    Pair(WEIGHTED, CREDITS, 2, Published(0.6, None, 0.54)),
    Pair(WEIGHTED, "cautious", 2, Published()),
)
TWO_AND_FOUR = (
    Pair(WEIGHTED, FOUR, 2, Published(18.3, -18.3, 0.64, 0.36)),
    Pair(WEIGHTED, FOUR, 4, Published(1.7, -1.6, 0.27, 0.26)),
    Pair(WEIGHTED, FOUR, 8, Published(-1.2, 1.0, 0.12, 0.14)),
)


@dataclass(frozen=True)
class Variant:
    """Runs of the study made or played another way: the ending of their names, and how they are played."""

    title: str
    ending: str = ""
    epsilon: float = 0.0
    raise_cap: int | None = None


NO_FOLD = "_no_fold"
LAST_EPSILON = 0.097  # of exploration: 0.9 * 0.9556 ** 49
VARIANTS = (
    Variant("as in the tables above"),
    Variant("never folding in exploration", NO_FOLD),
    Variant("a game is one episode", "_whole_games"),
    Variant("a game is one episode, never folding in exploration", "_whole_games" + NO_FOLD),
    Variant("played with an epsilon of 0.05", epsilon=0.05),
    Variant("played with the last epsilon", epsilon=LAST_EPSILON),
    Variant("never folding in exploration, played with the last epsilon", NO_FOLD, epsilon=LAST_EPSILON),
    Variant("never folding in exploration, one raise in a betting round", NO_FOLD, raise_cap=1),
    Variant("never folding in exploration, two raises in a betting round", NO_FOLD, raise_cap=2),
)
VARIANT_PAIRS = {
    "credits against initial": AGAINST_OTHERS[1],
    "credits against random": AGAINST_OTHERS[0],
    "weighted against initial": AGAINST_OTHERS[5],
    "two against four at 2": TWO_AND_FOUR[0],
    "at 4": TWO_AND_FOUR[1],
    "at 8": TWO_AND_FOUR[2],
}

_PARTS = re.split(r"<!-- (\w+) -->\n", Path(__file__).with_name("spike.md").read_text())[1:]
TEXTS = dict(zip(_PARTS[::2], _PARTS[1::2], strict=True))  # by name, with fields for `format`
