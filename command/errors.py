"""Errors that a user can cause and correct: one line on the screen and an exit code that is not 0."""

from busso.cards.base.errors import InputError


class UserError(InputError):
    """An error that ends a command: its line says what is wrong and how to mend it."""

    exit_code = 2
