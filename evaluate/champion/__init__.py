"""Champions: the networks that travel with the package, and their cards."""
