"""Ray clusters: connecting to one, a private one, and the process that speaks Ray."""
