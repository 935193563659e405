"""Rollouts whose games are played on a GPU."""
