"""Advice to people: hints and the review of a hand."""
