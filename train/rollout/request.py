"""Rollouts and requests for them. No PyTorch here: the Ray driver does not load it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

Weights = dict[str, "Tensor"]

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class RolloutRequest:
    """Rollout to play: the episodes `first .. first + count - 1` of the run with this exploration.

    Each `attempt` deals other games, so that what ended one worker does not end the next.
    """

    first: int
    count: int
    epsilon: float
    attempt: int = 0

    def pieces(self, most: int) -> list[RolloutRequest]:
        """Split the request into pieces of at most `most` episodes, for a smaller backend."""
        starts = range(0, self.count, most)
        return [replace(self, first=self.first + k, count=min(most, self.count - k)) for k in starts]

    def again(self) -> RolloutRequest:
        """Return a request for the same episodes with other games."""
        return replace(self, attempt=self.attempt + 1)


class EpisodeReturn(NamedTuple):
    """Reward sums over the network's occupied seats, or over all occupied seats if it has none.

    `mean` is NaN if it is 0 by construction: over all seats, as in self-play, wins and losses cancel. `absolute`, the
    mean size of a win or loss, still shows how much a game decides.
    """

    mean: float
    absolute: float


@dataclass(frozen=True)
class Rollout:
    """Result of a request. `transitions` are `Transitions`; None in transit through Ray.

    `decisions` counts the decisions of the learning seats, including forced ones that are not transitions.
    """

    request: RolloutRequest
    transitions: Any
    decisions: int
    weights_version: int
    episode_return: EpisodeReturn
