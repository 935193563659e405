"""The table: people play the games against rule players and trained agents."""
