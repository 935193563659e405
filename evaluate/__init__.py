"""Tournaments on duplicate deals, comparisons, reports, reviews and replays."""
