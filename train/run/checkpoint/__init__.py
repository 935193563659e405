"""Checkpoints: writing, loading and deletion."""
