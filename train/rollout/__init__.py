"""Rollout workers, in the learner's process or through Ray, and the transitions that they record."""
