"""What an override of the command line names: `key=value`, `+key=value`, `~key` or `group@package=choice`."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

_FORM = re.compile(r"(?P<sign>\+\+|\+|~|)(?P<key>[^=@]*)(?:@(?P<package>[^=]*))?(?:=(?P<value>.*))?", re.DOTALL)


@dataclass(frozen=True)
class Override:
    """One override. `value` is as typed, None without `=`; a group may name the package that it is for."""

    key: str
    value: str | None
    package: str | None
    sign: str  # "+" or "++" adds, "~" deletes, "" sets

    @property
    def group(self) -> str:
        """The outermost group of the key: `learner` of learner.lr and of learner."""
        return re.split(r"[.\[/]", self.key, maxsplit=1)[0]


def parsed(text: str) -> Override:
    """The parts of an override. Whether Hydra takes it is asked where settings are composed."""
    found = _FORM.fullmatch(text)
    assert found is not None  # every text has this form
    return Override(found["key"], found["value"], found["package"], found["sign"])


def key_of(text: str) -> str:
    """The key of an override."""
    return parsed(text).key


def given(overrides: Iterable[str]) -> dict[str, Override]:
    """The overrides by their keys; the last one of a key counts."""
    return {each.key: each for each in map(parsed, overrides)}
