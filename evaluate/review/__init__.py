"""Graded decisions of recorded games: the value of each to its seat, given what that seat could know."""
