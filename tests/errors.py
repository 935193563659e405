"""Subjects of errors: tests look at their key and their way out, not at whole sentences."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from busso.cards.base.errors import InputError


@contextmanager
def error_about(
    kind: type[InputError], key: object, says: str = "", hint: str = ""
) -> Iterator[pytest.ExceptionInfo[InputError]]:
    """Fail unless an error of one line about `key` comes, with these words in its problem and in its way out."""
    with pytest.raises(kind) as caught:
        yield caught
    error = caught.value
    assert error.key == str(key) and says in error.problem and hint in error.hint, f"{error.args}"
    assert "\n" not in str(error)


def key_of(text: str, alone: bool = True) -> str:
    """Return the key in the only line of a command that begins with `error: `; `alone`: its only line."""
    (line,) = [line for line in text.splitlines() if line.startswith("error: ")]
    assert not alone or text == f"{line}\n", text
    return line.removeprefix("error: ").partition(": ")[0]
