"""Errors that a user can cause and correct: one line on the screen and a non-zero exit code."""

from busso.cards.base.errors import UserError

__all__ = ["UserError"]
