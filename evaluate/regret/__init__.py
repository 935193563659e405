"""The bench of regret: what one other decision would have won, on the true deal."""
