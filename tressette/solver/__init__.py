"""Exact endings: double-dummy search with bounds and a transposition table."""
