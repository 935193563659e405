"""Checkpoints: written, read and deleted."""
