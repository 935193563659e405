"""Exact solutions of small games, and players compared with them."""
