"""Checks of error messages by key and hint, rather than by whole sentences."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from busso.base.errors import InputError


@contextmanager
def error_about(
    kind: type[InputError], key: object, says: str = "", hint: str = ""
) -> Iterator[pytest.ExceptionInfo[InputError]]:
    """Fail unless a one-line error about `key` is raised, with these words in its problem and its hint."""
    with pytest.raises(kind) as caught:
        yield caught
    error = caught.value
    assert error.key == str(key) and says in error.problem and hint in error.hint, f"{error.args}"
    assert "\n" not in str(error)


def refused(call: Callable[..., object], *arguments: Any, **more: Any) -> InputError:
    """Return the one-line error that a call raises."""
    with pytest.raises(InputError) as caught:
        call(*arguments, **more)
    assert "\n" not in str(caught.value)
    return caught.value


def key_of(text: str, alone: bool = True) -> str:
    """Return the key of the single `error: ` line of an output; `alone`: it is the output's only line."""
    (line,) = [line for line in text.splitlines() if line.startswith("error: ")]
    assert not alone or text == f"{line}\n", text
    return line.removeprefix("error: ").partition(": ")[0]


def error_line(text: str) -> str:
    """Return the single `error: ` line of an output, which has no traceback."""
    (line,) = [line for line in text.splitlines() if line.startswith("error: ")]
    assert "Traceback" not in text
    return line
