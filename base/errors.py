"""Errors that carry their key, problem and hint as data."""

from typing import Self

# EX_TEMPFAIL of `sysexits.h`: the same command resumes. Job scripts requeue on it (slurm/lib/train.sh).
EXIT_REQUEUE = 75


class InputError(ValueError):
    """Unusable input, printed as one line: `key: problem; hint`.

    `key` names the setting, file, card or seat as the user wrote it; `hint` says what to do, or is empty. If `problem`
    is an InputError, its key follows this one and its hint is kept. An error built from the text of another, or from
    the error itself, prints the same: Gymnasium raises `type(error)(text)`.
    """

    def __init__(self, key: object, problem: object = None, hint: str = "") -> None:
        if problem is None:
            key, problem = getattr(key, "key", ""), key
        if isinstance(problem, InputError):
            said = problem.problem if problem.key == str(key) else problem.about
            problem, hint = (f"{said}; {problem.hint}", hint) if hint and problem.hint else (said, hint or problem.hint)
        super().__init__(str(key), str(problem), hint)  # all three, so that they survive pickling

    @classmethod
    def of(cls, error: ValueError, key: str) -> Self:
        """Convert an error to this class; one that has no key gets `key`."""
        return cls(*error.args) if isinstance(error, InputError) else cls(key, error)

    @property
    def key(self) -> str:
        """The setting, file or argument that the error is about."""
        return str(self.args[0])

    @property
    def problem(self) -> str:
        """The problem, without the key."""
        return str(self.args[1])

    @property
    def hint(self) -> str:
        """Advice on what to do, or empty."""
        return str(self.args[2])

    @property
    def about(self) -> str:
        """The key and the problem, without the hint."""
        return f"{self.key}: {self.problem}" if self.key else self.problem

    def __str__(self) -> str:
        return f"{self.about}; {self.hint}" if self.hint else self.about


class UserError(InputError):
    """An error that ends a command; its line says what is wrong and how to fix it."""

    exit_code = 2
