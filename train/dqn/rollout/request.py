"""Rollouts and requests for them. No PyTorch here, which the Ray driver does not load."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

Weights = dict[str, "Tensor"]

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class RolloutRequest:
    """A rollout to play: the episodes `first .. first + count - 1` of the run with this exploration.

    Each `attempt` at them deals other games: what ended one worker shall not end the next.
    """

    first: int
    count: int
    epsilon: float
    attempt: int = 0

    def pieces(self, most: int) -> list[RolloutRequest]:
        """The same episodes, fewer at a time: a small backend may play what was asked of a larger one."""
        starts = range(0, self.count, most)
        return [replace(self, first=self.first + k, count=min(most, self.count - k)) for k in starts]

    def again(self) -> RolloutRequest:
        """The same episodes with other games."""
        return replace(self, attempt=self.attempt + 1)


class EpisodeReturn(NamedTuple):
    """Reward sums of the taken seats that are the network's; of all taken seats, if it has none.

    `mean` is NaN where it is 0 by construction: it is over all seats, and what one seat wins others lose. `absolute`,
    the mean size of a win or loss, still says how much a game decides.
    """

    mean: float
    absolute: float


@dataclass(frozen=True)
class Rollout:
    """The result of a request. `transitions` are `Transitions`; None on the way through Ray.

    `decisions` are those of the seats that learn, also those that are no transitions because there was no choice.
    """

    request: RolloutRequest
    transitions: Any
    decisions: int
    weights_version: int
    episode_return: EpisodeReturn
