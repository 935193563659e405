"""Q-networks, their layers and their evaluation."""
