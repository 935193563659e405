"""How a game is shown and judged: what a game brings in its module `presentation`, and what any other game gets."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cards.game import Game, States
from cards.hand import Hand


@dataclass(frozen=True)
class Row:
    """One row of a position: what it shows, and the things that stand there. `cards`: each of them is a card."""

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


@dataclass(frozen=True)
class Presentation:
    """What a game says of itself beyond its rules; all of it has a default that suits any game.

    - `rows(hand, seat)`: the position as the seat may know it, as rows of text;
    - `situation(game, state, seat)`: the same in a few words; `short(text)`: the name of an action in few letters;
    - `played`: what one game is called, as "a hand";
    - `phases`: parts of a game, in order, by which decisions are counted; `phase(states)` is the number of each state;
    - `graders`: players that can judge decisions, the best first; `coach`: the player that gives hints;
    - `units(game)`: by reward, the unit of its values and how many of the unit one reward is;
    - `offered`: by rule option, values that a menu offers.
    """

    rows: Callable[[Hand, int], Iterable[Row]] = _observed
    situation: Callable[[Game, np.void, int], str] = lambda game, state, seat: state_text(game, state)
    short: Callable[[str], str] = str
    played: str = "a game"
    phases: tuple[str, ...] = ("whole game",)
    phase: Callable[[States], NDArray[np.int64]] = lambda states: np.zeros(states.size, np.int64)
    graders: tuple[str, ...] = ()
    coach: str | None = None
    units: Callable[[Game], Mapping[str, tuple[str, float]]] = lambda game: {}
    offered: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)


_GENERIC = Presentation()


def presentation_of(game: Game) -> Presentation:
    """`PRESENTATION` of the module `presentation` in the game's package; the generic one where there is none."""
    module = own_module(game.name, "presentation")
    return _GENERIC if module is None else module.PRESENTATION


def own_module(package: str, name: str) -> ModuleType | None:
    """The module of that name in an imported package; None where there is none."""
    found = f"{package}.{name}"
    return importlib.import_module(found) if package in sys.modules and find_spec(found) else None
