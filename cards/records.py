"""Games as JSON Lines: recording games, reading files of records, and checking their fields."""

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from busso.base.errors import InputError
from busso.cards.game import Game, States
from busso.cards.play import Actions, Decisions

T = TypeVar("T")


class Recorder:
    """Recorder of games played side by side; pass `watch` to `busso.cards.play.play`."""

    def __init__(self, game: Game, games: int) -> None:
        self._game = game
        self._actions: list[list[int]] = [[] for _ in range(games)]

    def watch(self, decisions: Decisions, actions: Actions, totals: NDArray[np.float32]) -> None:
        for row, action in zip(decisions.games.tolist(), actions.tolist(), strict=True):
            self._actions[row].append(action)

    def take(self, row: int, start: np.void) -> dict[str, Any]:
        """Return the record of the game in a row, dealt as `start`, and clear the row for the next game."""
        actions, self._actions[row] = self._actions[row], []
        return self._game.record(start, actions)


def read_records(path: Path) -> Iterator[tuple[int, dict[str, Any] | ValueError]]:
    """Yield the number, from 1, and the record or ValueError of each line of a file but blank ones. Raises OSError."""
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            if line.strip():
                yield number, _parse(line)


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a number")


def _each_field_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        raise ValueError("duplicate field")
    return fields


# Python's default accepts NaN and Infinity, and silently keeps the last of duplicate fields.
_STRICT = json.JSONDecoder(parse_constant=_refuse_constant, object_pairs_hook=_each_field_once)


def _parse(line: bytes) -> dict[str, Any] | ValueError:
    try:
        record = _STRICT.decode(line.decode("utf-8-sig").rstrip())
    except json.JSONDecodeError as error:
        return ValueError(f"not JSON: {error.msg} at column {error.colno}")
    except (ValueError, RecursionError) as error:
        return ValueError(f"not JSON: {error}")
    return record if isinstance(record, dict) else ValueError("not a JSON object")


def field(record: dict[str, Any], name: str) -> Any:
    """Return a field of a record. Raises ValueError if it is missing."""
    if name not in record:
        raise InputError(name, "missing")
    return record[name]


def integer(record: dict[str, Any], name: str, low: int, high: int) -> int:
    """Return an integer field from `low` to `high`. Raises ValueError naming it."""
    value = field(record, name)
    if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
        raise InputError(name, f"{value!r} is not an integer from {low} to {high}")
    return value


def check_names(record: dict[str, Any], seats: int) -> None:
    """Raise ValueError unless `names`, the players of the seats, is missing or has a string per seat."""
    if "names" in record:
        names = list_of(record["names"], "names", seats)
        if not all(isinstance(name, str) for name in names):
            raise InputError("names", "expected strings only")


def parse_rank(text: object, ranks: Sequence[str]) -> int:
    """Return the index of a card's text in `ranks`, for games without suits. Raises ValueError for another text."""
    name = str(text).strip().upper() if isinstance(text, str | int) and not isinstance(text, bool) else ""
    if name not in list(ranks):
        raise ValueError(f"{text!r} is not a card ({' '.join(ranks)})")
    return list(ranks).index(name)


def parse_at(where: str, parse: Callable[[Any], T], text: object) -> T:
    """Return `parse(text)`; a ValueError of `parse` gets the key `where`."""
    try:
        return parse(text)
    except ValueError as error:
        raise InputError(where, error) from None


def drawn_cards(record: dict[str, Any], name: str, min_cards: int, parse: Callable[[Any], T]) -> list[T]:
    """Return the cards listed in a field, in draw order. Raises ValueError if fewer than `min_cards` or not cards."""
    texts = list_of(field(record, name), name, None)
    if len(texts) < min_cards:
        raise InputError(name, f"{len(texts)} cards, but a hand begins with {min_cards}")
    return [parse_at(f"{name}: card {number}", parse, text) for number, text in enumerate(texts, start=1)]


def check_copies(where: str, drawn: Sequence[int], copies: int, ranks: Sequence[str]) -> None:
    """Raise ValueError if a rank is drawn more often than there are copies of it."""
    for rank in drawn:
        if drawn.count(rank) > copies:
            raise InputError(where, f"{ranks[rank]} is drawn {drawn.count(rank)} times, but there are {copies}")


def give_house(
    side: str,
    cards: Sequence[int],
    dealt: int,
    state: States,
    draws: Callable[[Any], bool],
    give: Callable[[Any, int], None],
) -> None:
    """Give a house that `draws` by a rule its recorded cards after the first `dealt`, in the state `[1]`.

    Raises ValueError naming the side if there are too many or too few.
    """
    for number, card in enumerate(cards[dealt:], start=dealt + 1):
        if not draws(state[0]):
            raise InputError(side, f"card {number} is drawn although the {side} must stop or the game is decided")
        give(state[0], card)
    if draws(state[0]):
        raise InputError(side, f"the game is not over: the {side} must draw")


def list_of(value: object, name: str, length: int | None) -> list[Any]:
    """Return a list of this length, or of any if None. Raises ValueError naming it."""
    if not isinstance(value, list):
        raise InputError(name, "not a list")
    if length is not None and len(value) != length:
        raise InputError(name, f"{len(value)} entries instead of {length}")
    return value
