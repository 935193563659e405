"""Regret: how much one other decision would have won, on the true deal."""
