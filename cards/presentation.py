"""Presentation and judging of a game: the contents of its module `presentation`, and defaults for other games."""

import importlib
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from types import ModuleType
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from busso.cards.game import Game, States
from busso.cards.hand import Hand
from busso.cards.packages import package_of


@dataclass(frozen=True)
class Row:
    """Row of a position: a label and its items, which are cards if `cards`."""

    label: str
    items: tuple[str, ...]
    cards: bool = False

    @property
    def text(self) -> str:
        """All items on one line."""
        return (" " if self.cards else ", ").join(self.items)


def _observed(hand: Hand, seat: int) -> Iterator[Row]:
    """Yield the observation bits of a seat in groups of eight; the game's own table explains them."""
    words = hand.game.observe(hand.state, seats=np.array([seat], np.uint8))[0]
    bits = "".join(str(int(words[k // 64]) >> k % 64 & 1) for k in range(hand.game.bits))
    yield Row("observation", tuple(bits[k : k + 8] for k in range(0, len(bits), 8)), cards=True)


class Adviser(Protocol):
    """Adviser that values actions. `unit` is the unit of its values: points, credits, result, wins, network."""

    unit: str

    def values(self, game: Game, state: States, generator: NDArray[np.uint64]) -> NDArray[np.float64]:
        """Return the value of each action in the state `[1]`, `[actions]`; NaN if illegal or not examined."""


@dataclass(frozen=True)
class Judging:
    """Judges of a game's decisions, with the unit of each.

    - `graders`: players that can grade decisions, best first;
    - `coaches`: players that give hints at the table, best first;
    - `solvers`: the game's own advisers by name, each with its options class;
    - `refined(adviser)`: the adviser, with exact values where the game can solve the position;
    - `units(game)`: by reward, the unit of a network's values, how much of it one reward is, and the meaning of 0;
    - `odds(state, generator)`: estimated probabilities of named outcomes for the seat to move;
    - `unrecorded`: options missing from records, for which a grading network uses those it was trained with.
    """

    graders: tuple[str, ...] = ()
    coaches: tuple[str, ...] = ()
    solvers: Mapping[str, tuple[type[Any], Callable[[Any], Adviser]]] = field(default_factory=dict)
    refined: Callable[[Adviser], Adviser] = lambda adviser: adviser
    units: Callable[[Game], Mapping[str, tuple[str, float, float]]] = lambda game: {
        game.unit: (game.unit, 1.0, 0.0),
        "win": ("wins", 1.0, 0.0),
    }
    unrecorded: tuple[str, ...] = ()
    odds: Callable[[States, NDArray[np.uint64]], Mapping[str, float]] | None = None


@dataclass(frozen=True)
class Presentation:
    """Presentation of a game beyond its rules; every part has a default that suits any game.

    - `rows(hand, seat)`: the position as that seat may see it, as rows of text;
    - `short(text)`: a short name of an action;
    - `phases`: parts of a game, in order, by which decisions are counted; `phase(states)`: the phase of each state;
    - `judging`: the judges of decisions, and their units;
    - `units(game)`: by reward, the unit of its values and how much of the unit one reward is worth;
    - `offered`: by rule option, the values that a menu offers.
    """

    rows: Callable[[Hand, int], Iterable[Row]] = _observed
    short: Callable[[str], str] = str
    phases: tuple[str, ...] = ("whole game",)
    phase: Callable[[States], NDArray[np.int64]] = lambda states: np.zeros(states.size, np.int64)
    judging: Judging = Judging()
    units: Callable[[Game], Mapping[str, tuple[str, float]]] = lambda game: {}
    offered: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)


def presentation_of(game: Game) -> Presentation:
    """Return the game's own presentation, else `PRESENTATION` of its package's module, else the generic one."""
    if game.presentation is not None:
        found: Presentation = game.presentation
        return found
    module = own_module(package_of(game.name), "presentation")
    return Presentation() if module is None else module.PRESENTATION


def own_module(package: str, name: str) -> ModuleType | None:
    """Import a module of an imported package, or return None if it has none of this name."""
    found = f"{package}.{name}"
    is_package = hasattr(sys.modules.get(package), "__path__")
    return importlib.import_module(found) if is_package and find_spec(found) else None
