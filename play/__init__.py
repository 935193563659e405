"""Tables at which people play against rule players and trained agents."""
