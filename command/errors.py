"""Errors that a user can cause and correct: one line on the screen and an exit code that is not 0."""

from busso.cards.base.errors import UserError

__all__ = ["UserError"]
