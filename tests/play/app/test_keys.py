"""The line of keys at the bottom of a screen."""

from __future__ import annotations

import importlib
import pkgutil

import pytest

import play.app
from play.app.keys import Key, KeyBar
from play.language import LANGUAGES, Language


def all_keys() -> dict[str, tuple[Key, ...]]:
    """Of every class of the application that has some, by its module and name."""
    found = {}
    for module in pkgutil.walk_packages(play.app.__path__, "play.app."):
        for name, each in vars(importlib.import_module(module.name)).items():
            if isinstance(each, type) and "KEYS" in vars(each):
                found[f"{module.name}.{name}"] = each.KEYS
    return found


@pytest.mark.parametrize("lang", LANGUAGES)
def test_all_keys_of_a_screen_are_seen_at_80_columns(lang: str) -> None:
    found = all_keys()
    assert len(found) > 5
    for name, keys in found.items():
        shown = str(KeyBar(keys, Language(lang)).render())
        room = 80 if name.endswith("WatchScreen") else 78  # no blanks at both ends where one looks on
        assert len(shown) <= room, f"{name}: {shown}"
