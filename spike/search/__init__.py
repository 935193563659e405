"""Players of Corellian Spike that sample what they cannot see."""
