"""Q-networks, their layers and how they are evaluated."""
