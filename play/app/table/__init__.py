"""The table as a screen, common to all games."""
