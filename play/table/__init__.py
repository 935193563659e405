"""Table without a screen: its seats, session and saves."""
