"""Presentation and judging of a game: the parts of a game's module `presentation`, and defaults for other games."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from types import ModuleType
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from busso.cards.base.packages import package_of
from busso.cards.game import Game, States
from busso.cards.hand import Hand


@dataclass(frozen=True)
class Row:
    """Row of a position: its label, and the things that stand there. `cards`: each of them is a card."""

    label: str
    items: tuple[str, ...]
    cards: bool = False

    @property
    def text(self) -> str:
        """All items in one line."""
        return (" " if self.cards else ", ").join(self.items)


def state_text(game: Game, state: np.void) -> str:
    """A state of a game with a model, in a few words; empty for other games."""
    if game.model is None:
        return ""
    model = game.model(game.options, next(iter(game.rewards)))
    return model.state_text(int(model.index(state)))


def _observed(hand: Hand, seat: int) -> Iterator[Row]:
    """The bits that the seat may know, in groups of eight; the game's own table says what they mean."""
    words = hand.game.observe(hand.state, seats=np.array([seat], np.uint8))[0]
    bits = "".join(str(int(words[k // 64]) >> k % 64 & 1) for k in range(hand.game.bits))
    yield Row("observation", tuple(bits[k : k + 8] for k in range(0, len(bits), 8)), cards=True)


class Adviser(Protocol):
    """Knows what actions are worth. `unit` is that of its values: points, credits, result, wins, network."""

    unit: str

    def values(self, game: Game, state: States, generator: NDArray[np.uint64]) -> NDArray[np.float64]:
        """Return the value of each action in the state `[1]`, `[actions]`; NaN for those not legal or not looked at."""


@dataclass(frozen=True)
class Judging:
    """Judges of a game's decisions, with the unit of each.

    - `graders`: players that can, the best first;
    - `coaches`: players that give hints at the table, the best first;
    - `solvers`: advisers of the game itself, by name, each with its class of options;
    - `refined(adviser)`: the adviser, but what the game itself can solve is solved;
    - `units(game)`: by reward, the unit of a network's values, how many of it one reward is, and what 0 stands for;
    - `odds(state, generator)`: how likely named outcomes are for the seat to move, drawn with that generator;
    - `unrecorded`: options that records do not say, which a network that grades has as it has learned them.
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

    - `rows(hand, seat)`: the position as the seat may know it, as rows of text;
    - `situation(game, state, seat)`: the same in a few words; `short(text)`: the name of an action in few letters;
    - `played`: what one game is called, as "a hand";
    - `phases`: parts of a game, in order, by which decisions are counted; `phase(states)` is the number of each state;
    - `judging`: who judges decisions, and in what unit;
    - `units(game)`: by reward, the unit of its values and how many of the unit one reward is;
    - `offered`: by rule option, values that a menu offers.
    """

    rows: Callable[[Hand, int], Iterable[Row]] = _observed
    situation: Callable[[Game, np.void, int], str] = lambda game, state, seat: state_text(game, state)
    short: Callable[[str], str] = str
    played: str = "a game"
    phases: tuple[str, ...] = ("whole game",)
    phase: Callable[[States], NDArray[np.int64]] = lambda states: np.zeros(states.size, np.int64)
    judging: Judging = Judging()
    units: Callable[[Game], Mapping[str, tuple[str, float]]] = lambda game: {}
    offered: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)


_GENERIC = Presentation()


def presentation_of(game: Game) -> Presentation:
    """Its own; else `PRESENTATION` of the module `presentation` in its package, or the generic one."""
    if game.presentation is not None:
        found: Presentation = game.presentation
        return found
    module = own_module(package_of(game.name), "presentation")
    return _GENERIC if module is None else module.PRESENTATION


def own_module(package: str, name: str) -> ModuleType | None:
    """The module of that name in an imported package; None where there is none."""
    found = f"{package}.{name}"
    is_package = hasattr(sys.modules.get(package), "__path__")
    return importlib.import_module(found) if is_package and find_spec(found) else None
