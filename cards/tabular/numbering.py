"""Numbered decision states of a game, for policies that fit a table."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Policy = NDArray[np.uint8]  # one action per state


@dataclass(frozen=True, eq=False)
class Numbering:
    """Numbered decision states of a game.

    `number(state)` is the compiled function from a state record to the number of the mover's decision state, and
    `episode(state)` a compiled count of the episodes before it, for learning that treats each hand of a match as an
    episode; state `terminal` follows the last decision of an episode. `legal[states]` are the legal actions as bit
    masks, 0 for `terminal`, and `initial[states]` the actions before learning. `text(number)` is a state's text in
    files, and `parse(text)` its inverse (ValueError for an unknown state). `listed` are the states that occur under the
    game's options, `terminal` last; `listings` all such lists that a table may cover, shortest first.
    """

    number: Callable[[Any], int]
    episode: Callable[[Any], int]
    terminal: int
    legal: NDArray[np.uint64]
    initial: Policy
    text: Callable[[int], str]
    parse: Callable[[str], int]
    listed: NDArray[np.int64]
    listings: tuple[NDArray[np.int64], ...]
