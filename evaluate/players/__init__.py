"""Players by name, among them search with a network."""
