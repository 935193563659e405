"""Trained networks as players."""
