"""Players by their texts: rule players, searches, trained networks and tables."""
