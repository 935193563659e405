"""Python and Numba errors in one line."""

import itertools
import re

NUMBA_PLACE = re.compile(r'File "(?P<file>[^"]+)", line (?P<line>\d+):?')


def problem_of(error: BaseException) -> str:
    """Describe an error in one line."""
    if isinstance(error, SyntaxError):
        return f"{type(error).__name__}: {error.msg}"
    if is_of_numba(error):
        return f"cannot be compiled: {_numba_problem(str(error))}"
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def is_of_numba(error: BaseException) -> bool:
    """Return whether the error is a failed Numba compilation."""
    return type(error).__module__.startswith("numba.") and hasattr(error, "contexts")


def _numba_problem(text: str) -> str:
    """Return the first informative line of Numba's message, with the line of code it is about."""
    lines = [line.strip() for line in re.sub(r"\x1b\[[0-9;]*m", "", text).splitlines()]
    said = [
        line
        for line in lines
        if line and not line.startswith(("Failed in ", "During:", "File ", "- Resolution", "There are", "<source"))
    ]
    called = [line.removeprefix(">>> ") for line in lines if line.startswith(">>> ")]
    if said and called and said[0].endswith("for signature:"):
        said[0] = f"{said[0].removesuffix(' for signature:')} for {called[0]}"
    marked = [before for before, line in itertools.pairwise(lines) if line and set(line) <= {"^", "~"}]
    return (said[0] if said else "not code that Numba can compile") + (f" in `{marked[-1]}`" if marked else "")
