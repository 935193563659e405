"""Rollout workers, replay buffer, DQN learner, checkpoints and metrics: `python -m train`."""
