"""Numbered states: their numbering, games as Markov decision processes, and policies in tables."""
