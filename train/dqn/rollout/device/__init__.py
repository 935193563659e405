"""Rollouts with games on a GPU."""
