"""A game's decisions as numbered states, for policies that fit a table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Policy = NDArray[np.uint8]  # an action for each state


@dataclass(frozen=True, eq=False)
class Numbering:
    """A game's decisions as numbered states.

    `number(state)` is the compiled function from a state record to the number of the decision of the seat to move, and
    `episode(state)` a compiled count of the episodes before it, for learning that takes a hand of a match for an
    episode; state `terminal` follows the last decision of one. `legal[states]` are the legal actions as bit masks, 0
    for `terminal`, and `initial[states]` the action where nothing has been learned. `text(number)` is how a file writes
    a state and `parse(text)` the number again (ValueError for no state). `listed` are the states that occur under the
    game's options, `terminal` last; `listings` all such lists that a table may have been made for, the shortest first.
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
