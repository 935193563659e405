"""The counters of runs that version 0.3.0 trained with several learners."""

from busso.train.dqn.counters import DqnCounters
from busso.train.dqn.old_runs import with_one_learner
from busso.train.dqn.rate_limiter import RateLimiter
from busso.train.settings.dqn import LearnerSettings


def test_counters_of_three_learners() -> None:
    """Of 60 episodes that are out the first learner knows 20; of 12 updates, 5 were made and 5 offset: 2 are due."""
    counters = {"episodes": 40, "env_steps": 4608, "next_episode": 100, "updates_offset": 5, "forgiven": 0.0}
    settings = {"learner": {"samples_per_insert": 0.5, "batch_size": 64}}
    state = {"settings": settings, "counters": counters, "replay": {}, "open_requests": [[40, 10, 0], [70, 10, 1]]}
    found = with_one_learner(state | {"replicas": 3})
    assert found["replay"] is None and found["open_requests"] == state["open_requests"]
    kept = DqnCounters(**{key: value for key, value in found["counters"].items() if key != "updates_offset"})
    assert (kept.lost, kept.dealt) == (40, 60)
    limiter = RateLimiter(LearnerSettings(learning_starts=1, batch_size=64, samples_per_insert=0.5), 10**6)
    assert limiter.updates_due(kept, held=1, updates=5) == 2
    alone = with_one_learner(state)
    assert alone["replay"] == {} and alone["counters"] == counters | {"forgiven": 5.0, "inserted": 4608}
