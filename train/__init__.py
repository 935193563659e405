"""Rollout workers, replay buffer, DQN learner, checkpoints and metrics: `busso train`."""

if __name__ != "busso.train":  # found from the root of a clone
    raise ImportError(f"{__name__} is busso.train: import that", name=__name__)
