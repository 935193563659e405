"""Duplicate deals, and matches of several hands with their records."""
