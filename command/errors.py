"""Errors that a user can cause and mend: one line on the screen and an exit code that is not 0."""


class UserError(ValueError):
    """The message is one line that says what is wrong and how to mend it."""

    exit_code = 2
