"""Shell completion."""
