"""The progress of a run as counters."""

from __future__ import annotations

import math
from dataclasses import dataclass

from busso.train.dqn.rollout.request import Rollout


@dataclass
class DqnCounters:
    """Position of a run; saved with every checkpoint."""

    episodes: int = 0  # whose transitions are in the buffer
    env_steps: int = 0  # decisions of those episodes
    inserted: int = 0  # transitions of those episodes; decisions without a choice may be none
    next_episode: int = 0  # the first that no request covers
    rollouts: int = 0  # that came back
    seconds: float = 0.0  # of training, over all starts of the run
    evaluated: int = -1  # env_steps of the newest weights that were evaluated
    return_sum: float = 0.0  # of the episode returns since the last log row that are not 0 by construction
    return_count: int = 0
    absolute_return_sum: float = 0.0  # of all episodes since the last log row, of which there were
    row_episodes: int = 0
    row_env_steps: int = 0  # decisions in them
    forgiven: float = 0.0  # updates that were earned and are never made (RateLimiter, rule 4)
    lag_sum: int = 0  # how many updates old the weights of rollouts were, since the last log row
    lag_count: int = 0
    too_old: int = 0  # requests whose rollouts were thrown away because of their weights, to be played again
    idle_starts: int = 0  # in a row, that ended before anything was played or learned

    def count(self, rollout: Rollout, updates: int) -> None:
        """Add a rollout that came back after `updates` updates."""
        self.rollouts += 1
        self.episodes += rollout.request.count
        self.env_steps += rollout.decisions
        self.inserted += len(rollout.transitions.action)
        self.row_episodes += rollout.request.count
        self.row_env_steps += rollout.decisions
        mean, absolute = rollout.episode_return
        self.absolute_return_sum += absolute * rollout.request.count
        if not math.isnan(mean):
            self.return_sum += mean * rollout.request.count
            self.return_count += rollout.request.count
        self.lag_sum += updates - rollout.weights_version
        self.lag_count += 1

    def log_row(self) -> dict[str, float]:
        """The curves of the rollouts since the last row; the next row starts from zero."""
        row = {
            "rollout/episode_return": _ratio(self.return_sum, self.return_count),
            "rollout/absolute_return": _ratio(self.absolute_return_sum, self.row_episodes),
            "rollout/episode_length": _ratio(self.row_env_steps, self.row_episodes),
            "rollout/episodes": float(self.episodes),
            "rollout/too_old": float(self.too_old),
            "time/weights_lag": _ratio(self.lag_sum, self.lag_count),
        }
        self.return_sum, self.return_count, self.lag_sum, self.lag_count = 0.0, 0, 0, 0
        self.absolute_return_sum, self.row_episodes, self.row_env_steps = 0.0, 0, 0
        return row


def _ratio(total: float, count: int) -> float:
    return total / count if count else math.nan
