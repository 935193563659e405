"""Checkpoints: written, read, pruned, and the segments of a replay buffer."""
