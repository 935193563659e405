"""States by number: their numbering, a game as a Markov decision process, and policies in tables."""
