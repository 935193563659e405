"""The error that names its key, the problem and the way out, as data."""

from __future__ import annotations

from typing import Self


class InputError(ValueError):
    """Input that cannot be used; its text is one line, `key: problem; hint`.

    `key` is what it is about, as the user wrote it: a setting, a file, a card, a seat. `hint` is the way out, or empty.
    Where `problem` is an InputError itself, its key is said after this one and its hint is kept.
    Made of its text alone, or of such an error, it says the same: Gymnasium raises `type(error)(text)`.
    """

    def __init__(self, key: object, problem: object = None, hint: str = "") -> None:
        if problem is None:
            key, problem = getattr(key, "key", ""), key
        if isinstance(problem, InputError):
            said = problem.problem if problem.key == str(key) else problem.about
            problem, hint = (f"{said}; {problem.hint}", hint) if hint and problem.hint else (said, hint or problem.hint)
        super().__init__(str(key), str(problem), hint)  # all of them, so that a copy in another process has them

    @classmethod
    def of(cls, error: ValueError, key: str) -> Self:
        """The same as an error of this kind; one that does not say what it is about is about `key`."""
        return cls(*error.args) if isinstance(error, InputError) else cls(key, error)

    @property
    def key(self) -> str:
        """The setting, file or argument that the error is about."""
        return str(self.args[0])

    @property
    def problem(self) -> str:
        """The problem in words, without the key."""
        return str(self.args[1])

    @property
    def hint(self) -> str:
        """The way out, or empty."""
        return str(self.args[2])

    @property
    def about(self) -> str:
        """The key and the problem, without the way out."""
        return f"{self.key}: {self.problem}" if self.key else self.problem

    def __str__(self) -> str:
        return f"{self.about}; {self.hint}" if self.hint else self.about


class UserError(InputError):
    """An error that ends a command: its line says what is wrong and how to mend it."""

    exit_code = 2
