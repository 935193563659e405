"""Rollout workers, in the learner's process or through Ray."""
