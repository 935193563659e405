"""Learning in tables."""
