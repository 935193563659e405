"""Suggestions for a mistyped key."""

from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches

ALIKE = 0.7  # ratio of similarity, at most 1, from which two words are alike


def nearest(key: str, known: Iterable[str]) -> str | None:
    """Return the known key that `key` may stand for: same last part (`lr`: learner.lr), or similar spelling."""
    known, name = list(known), key.rpartition(".")[2]
    same = [each for each in known if each.rpartition(".")[2] == name]
    found = get_close_matches(key, same or known, 1, 0.0 if same else ALIKE)
    return found[0] if found else None


def dotted(values: Mapping[str, object], prefix: str = "") -> Iterator[str]:
    """Yield the dotted keys of nested dictionaries, including those of groups."""
    for name, value in values.items():
        yield prefix + name
        if isinstance(value, Mapping):
            yield from dotted(value, f"{prefix}{name}.")
