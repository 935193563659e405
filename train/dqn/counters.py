"""Counters of a run's progress."""

import math
from dataclasses import dataclass

from busso.train.dqn.rollout.request import Rollout


@dataclass
class DqnCounters:
    """Progress of a run, saved with every checkpoint."""

    episodes: int = 0  # whose transitions have been inserted
    env_steps: int = 0  # decisions in these episodes
    inserted: int = 0  # transitions of these episodes, fewer than env_steps where forced moves are not learned from
    next_episode: int = 0  # first episode that has not been requested
    rollouts: int = 0  # received
    seconds: float = 0.0  # of training, over all starts of the run
    evaluated: int = -1  # env_steps of the newest evaluated weights
    return_sum: float = 0.0  # of the episode returns since the last log row, without those that are 0 by construction
    return_count: int = 0
    absolute_return_sum: float = 0.0  # of all episodes since the last log row
    row_episodes: int = 0
    row_env_steps: int = 0  # decisions in these episodes
    forgiven: float = 0.0  # updates that were due but will never be made (RateLimiter, rule 4)
    lag_sum: int = 0  # age of the rollouts' weights in updates, since the last log row
    lag_count: int = 0
    too_old: int = 0  # requests that are played again because their weights were too old
    idle_starts: int = 0  # consecutive starts that ended before anything was played or learned

    def count(self, rollout: Rollout, updates: int) -> None:
        """Count a rollout received after `updates` updates."""
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
        """Return the rollout curves since the last row and reset them."""
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
