"""Widgets of the games' screens."""
