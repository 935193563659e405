import math
from dataclasses import dataclass, field
from typing import Annotated

import pytest

from busso.base.bounds import Bounds, check_bounds
from busso.base.errors import InputError
from tests.errors import error_about


@dataclass
class Numbers:
    count: Annotated[int, Bounds(1, 10)] = 3
    share: Annotated[float, Bounds(0.0, 1.0, above=True)] = 0.5
    limit: Annotated[float, Bounds(0.0, 100.0, below=True, words=(math.inf,))] = 10.0
    games: Annotated[int | None, Bounds(1, 10, words=(None,))] = None
    decks: Annotated[int | str, Bounds(1, 8, words=("infinite",))] = "infinite"
    widths: Annotated[list[int], Bounds(1, 10)] = field(default_factory=lambda: [1, 2])
    mix: Annotated[dict[str, float], Bounds(0.0, 1.0)] = field(default_factory=lambda: {"a": 1.0})
    free: float = 1.0


GOOD = {
    "count": [1, 10],
    "share": [5e-324, 1.0, 1],
    "limit": [0.0, -0.0, 99.9, math.inf],
    "games": [None, 1, 10],
    "decks": ["infinite", 1, 8],
    "widths": [[], [1, 10]],
    "mix": [{}, {"a": 0.0, "b": 1}],
    "free": [math.nan, -1e300],
}
NEVER = [math.nan, -math.inf, True, "5", 10**30, -(2**63), [True], b"1"]
BAD = {
    "count": [0, 11, None, 2.0, math.inf],
    "share": [0.0, -0.0, math.nextafter(1, 2), math.inf],
    "limit": [-5e-324, 100.0, None],
    "games": [0, 11],
    "decks": [0, 9, None, "many"],
    "widths": [[0], [1, 11], [2.0], [None]],
    "mix": [{"a": 1.0, "b": math.nan}, {"a": -0.1}],
    "free": [],
}


@pytest.mark.parametrize("name", GOOD)
def test_numbers_in_and_out_of_bounds(name: str) -> None:
    for value in GOOD[name]:
        check_bounds("group", Numbers(**{name: value}))
    for value in [*BAD[name], *(NEVER if BAD[name] else [])]:
        with error_about(InputError, f"group.{name}"):
            check_bounds("group", Numbers(**{name: value}))
    check_bounds("", Numbers())


def test_the_line_says_what_may_be() -> None:
    def line(**values: object) -> str:
        with pytest.raises(InputError) as caught:
            check_bounds("", Numbers(**values))  # type: ignore[arg-type]
        return str(caught.value)

    assert line(count=11) == "count: expected an integer from 1 to 10, not 11"
    assert line(share=0.0) == "share: expected more than 0, at most 1, not 0.0"
    assert line(limit=-1.0) == "limit: expected 0 or more, less than 100, or inf, not -1.0"
    assert line(games=0) == "games: expected an integer from 1 to 10, or null, not 0"
    assert str(Bounds(0.0, 1e9)) == "0 to 1000000000"


def test_defaults_are_not_shared() -> None:
    Numbers().widths.append(5)
    assert Numbers().widths == [1, 2]
