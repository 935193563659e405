"""Screen of spectators."""
