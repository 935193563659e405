"""Game-specific parts of reports: the module named after a game has `blocks` and `section`."""
