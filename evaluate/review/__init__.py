"""Decisions of recorded games, graded: what each was worth to its seat, for what that seat could know."""
