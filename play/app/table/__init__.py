"""The table as a screen, and what is common to all games."""
