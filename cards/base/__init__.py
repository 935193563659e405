"""Basics for all modules: errors, bounds of settings, atomic files, locations of games and players."""
