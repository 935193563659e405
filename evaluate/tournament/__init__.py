"""Tournaments: every pair of players on the same duplicate deals."""
