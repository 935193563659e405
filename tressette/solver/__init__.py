"""Exact endings: double-dummy search with bounds and transpositions."""
