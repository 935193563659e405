"""A table without a screen: who sits, the session, saved tables."""
