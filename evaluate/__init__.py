"""Players by name, tournaments on duplicate deals, statistics, replays of records."""
