"""Graded decisions of recorded games, by their value given the information of the seat."""
