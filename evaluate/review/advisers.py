"""Advisers: values of the actions in a position; costs and grades of decisions, whatever the result of the game."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from busso.cards.compiled.splitmix import derive
from busso.cards.game import Game, States
from busso.cards.hand import Hand, Move
from busso.cards.mdp import END
from busso.cards.play import Decisions
from busso.cards.player_specs import PlayerSpec
from busso.cards.presentation import Adviser, presentation_of
from busso.command.settings.checks import SettingsError
from busso.train.players.load import load_resolved
from busso.train.players.resolve import TRAINED, ResolvedPlayer, resolve

if TYPE_CHECKING:
    import torch

    from busso.evaluate.solve.solution import Solved

_HINTS = 0x68696E74 << 16  # salt, to which the number of the move is added
THE_ONE = np.zeros(1, np.int64)
BEST, FINE, MISTAKE, BLUNDER = "best", "fine", "mistake", "blunder"
GRADES = (BEST, FINE, MISTAKE, BLUNDER)
EXACT = "exact"  # the adviser by the exact solution of a game, or of a position


@dataclass(frozen=True)
class ActionValue:
    """Value of an action for the seat that takes it, in the adviser's unit; None if unknown."""

    action: int
    value: float | None


class Sampler:
    """Adviser with the values of a search player. See `Adviser`."""

    def __init__(self, game: Game, player: Any) -> None:
        self._player, self.unit = player, getattr(player, "unit", game.unit)

    def values(self, game: Game, state: States, generator: NDArray[np.uint64]) -> NDArray[np.float64]:
        self._player.begin(generator)
        found: NDArray[np.float64] = self._player.action_values(Decisions(game, state, THE_ONE))[0]
        return found


class NetworkAdviser:
    """Adviser with the values of a network, as `offset + scale * value` in `unit`. See `Adviser`."""

    def __init__(self, network: Any, unit: str = "network", scale: float = 1.0, offset: float = 0.0) -> None:
        self._network, self.unit, self._scale, self._offset = network, unit, scale, offset

    def values(self, game: Game, state: States, generator: NDArray[np.uint64]) -> NDArray[np.float64]:
        found: NDArray[np.float64] = self._network.values(Decisions(game, state, THE_ONE).observation)[0]
        return self._offset + self._scale * found.astype(np.float64)


def adviser_of(game: Game, player: Any) -> Adviser | None:
    """Return an adviser with the values of a search player or a network; None for a player without values."""
    if hasattr(player, "action_values"):
        return Sampler(game, player)
    return NetworkAdviser(player) if hasattr(player, "values") else None


def valued_player(game: Game, player: str | PlayerSpec, key: str) -> ResolvedPlayer:
    """Resolve a player. Raises SettingsError naming `key` for one without values, and as `resolve`."""
    found = resolve(game, player, key)
    if not found.kind.values:
        raise SettingsError(key, f"{player} gives no values", f"name a network, or {valuing(game)}")
    return found


def adviser_by(game: Game, player: ResolvedPlayer, device: Callable[[], torch.device], key: str) -> Adviser:
    """Return an adviser with the values of a `valued_player`, a network's in a unit of the game.

    Raises SettingsError naming `key` for a network whose reward cannot be converted, and as `load_resolved`.
    """
    if player.kind is not TRAINED or player.path is None:
        return Sampler(game, load_resolved(game, player, device, key))
    from busso.train.players.trained import load_trained

    network, settings = load_trained(game, player.path, device(), key)
    reward = settings.reward_name(game)
    units = presentation_of(game).judging.units(settings.load_game())
    if reward in units:
        return NetworkAdviser(network, *units[reward])
    if game.model is not None:
        return NetworkAdviser(network, "result")
    raise SettingsError(key, f"{player.path} was trained on the reward {reward}, whose values are not {game.unit}")


def valuing(game: Game) -> str:
    """Return the names of the players that value actions of a game, for a hint in a message."""
    names = [f"{name}:RUN" if kind.of_network else name for name, kind in game.kinds.items() if kind.values]
    return " or ".join([*["exact"] * (game.model is not None), *names, "a class of yours with action_values"])


class ExactAdviser:
    """Adviser with the exact values of a small game, given the settings of its group `game`."""

    unit = "result"

    def __init__(self, settings: dict[str, Any]) -> None:
        self._settings = settings

    @cached_property
    def solved(self) -> Solved:
        """Solution, computed on first use."""
        from busso.evaluate.solve.solution import solve

        return solve(self._settings)

    def values(self, game: Game, state: States, generator: NDArray[np.uint64]) -> NDArray[np.float64]:
        """See `Adviser`."""
        mdp, number = self.solved.model.mdp, self.solved.model.index(state[0])
        successor = mdp.successor[number]
        after = np.where(successor == END, 0.0, self.solved.solution.values[successor])
        values = (mdp.probability[number] * (mdp.reward[number] + mdp.discount * after)).sum(axis=1)
        legal = mdp.probability[number].sum(axis=1) > 0
        return np.where(legal, values, np.nan)

    def odds(self, state: States) -> list[tuple[int, dict[str, float]]]:
        """Return the chance of each outcome after each legal action, with optimal play afterwards."""
        model, number = self.solved.model, self.solved.model.index(state[0])
        probability, successor = model.mdp.probability[number], model.mdp.successor[number]
        outcomes = len(model.outcomes)
        # The last branches of each action are its outcomes.
        after = np.where((successor == END)[..., None], 0.0, self.solved.outcomes[successor])
        chances = (probability[..., None] * after).sum(axis=1) + probability[:, -outcomes:]
        return [
            (action, dict(zip(model.outcomes, chances[action].tolist(), strict=True)))
            for action in np.flatnonzero(probability.sum(axis=1) > 0).tolist()
        ]


def worths_by(
    adviser: Adviser, hand: Hand, number: int, state: States, legal: list[int], look: int = 0
) -> list[ActionValue]:
    """Return values of the legal actions at move `number`, from 0, best first; each `look` uses fresh samples."""
    values = adviser.values(hand.game, state, derive(hand.seeds, _HINTS + number + (look << 48)))
    worths = [ActionValue(a, None if np.isnan(values[a]) else float(values[a])) for a in legal]
    return sorted(worths, key=lambda each: np.inf if each.value is None else -each.value)


@dataclass(frozen=True)
class Evaluation:
    """A decision: number of the move, from 1, action played, and values of all legal actions, best first.

    `cost` is the difference from the best action's value; None if either is unknown.
    """

    number: int
    seat: int
    action: int
    worths: tuple[ActionValue, ...]
    cost: float | None

    @property
    def played(self) -> float | None:
        """Value of the played action; None if unknown."""
        return next(each.value for each in self.worths if each.action == self.action)

    @property
    def best(self) -> ActionValue:
        """Best action; among equals the one that was played."""
        return next(each for each in self.worths if self.cost != 0 or each.action == self.action)


def judged_of(number: int, move: Move, worths: Sequence[ActionValue]) -> Evaluation | None:
    """Return the judgement of move `number`, from 0, given the values, best first; None for a forced move."""
    if len(worths) < 2:
        return None
    played = next(each.value for each in worths if each.action == move.action)
    best = worths[0].value
    cost = None if played is None or best is None else best - played
    return Evaluation(number + 1, move.seat, move.action, tuple(worths), cost)


def judged_by(adviser: Adviser, hand: Hand, number: int, move: Move, look: int = 0) -> Evaluation | None:
    """Return the judgement of move `number`, from 0, by an adviser's values; None for a forced move."""
    mask = int(hand.game.legal(move.before)[0])
    legal = [action for action in range(hand.game.actions) if mask >> action & 1]
    if len(legal) < 2:
        return None
    return judged_of(number, move, worths_by(adviser, hand, number, move.before, legal, look))


@dataclass(frozen=True)
class Limits:
    """Greatest costs of `best`, `fine` and `mistake`, in the values' unit. Raises SettingsError unless they ascend."""

    best: float
    fine: float
    mistake: float

    def __post_init__(self) -> None:
        if not 0 <= self.best <= self.fine <= self.mistake < float("inf"):
            raise SettingsError("grades", f"three increasing costs, as [0.1,0.34,1], not {[*vars(self).values()]}")

    def grade(self, cost: float) -> str:
        """Return the grade for a cost."""
        if cost <= self.best:
            return BEST
        return FINE if cost <= self.fine else MISTAKE if cost <= self.mistake else BLUNDER


def limits_of(game: Game, unit: str) -> Limits:
    """Return the default limits of the grades, in natural steps of the game.

    - Points of Tressette: a mistake gives away more than an honour (1/3 point), a blunder more than an ace (1 point);
      256 sampled hands cannot resolve 0.1.
    - Credits of Spike: a blunder costs more than a raise (the option `bet`), a mistake more than a quarter of one.
    - Exact results of a small game, from -1 to 1: 0.02 and 0.1 are 1 and 5 wins in a hundred. `wins` are sampled values
      of the same kind, with wider limits.
    """
    if unit.startswith("points"):
        return Limits(0.1, 0.34, 1.0)
    if unit == "credits":
        bet = float(getattr(game.options, "bet", 2))
        return Limits(0.05 * bet, 0.25 * bet, bet)
    return Limits(0.0005, 0.02, 0.1) if unit == "result" else Limits(0.02, 0.06, 0.2)
