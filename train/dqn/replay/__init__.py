"""Replay buffer and its transitions."""
