"""Who grades: `by` of the settings turned into an adviser for each game, and two looks at what seems a mistake."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from cards.game import Game, States
from cards.hand import Hand
from cards.play import Decisions
from cards.player_specs import Spec, parse_spec, read_options
from cards.presentation import Adviser, presentation_of
from command.errors import UserError
from command.game import game_defaults
from command.settings.checks import SettingsError
from evaluate.players.load import load_player
from evaluate.review.advisers import THE_ONE, Exact, adviser_of, worths_by
from evaluate.review.grading import Judged, Limits, judged_of, limits_of
from evaluate.review.settings import AUTO
from train.dqn.players import champion_file as champion
from train.dqn.players.load import load_learned
from train.dqn.players.named import TABLES, file_of
from train.run.checkpoint import checkpoint

EXACT, CHEATING, SEARCH = "exact", "cheating", "search"
_SMALL = (EXACT,)


class Grader:
    """Judges the decisions of hands of one game, by `name`; `limits` turn costs into grades.

    What an adviser draws is luck, and the best of several is flattered by it. A decision that seems worse than fine is
    therefore looked at a second time with fresh draws, and costs what the action that was best before is worth more
    there. Exact values are looked at once.
    """

    def __init__(self, name: str, adviser: Adviser, limits: Limits) -> None:
        self.name, self.unit, self.limits = name, adviser.unit, limits
        self._adviser = adviser
        self.cheats = _is_cheating(name)
        self._draws = not isinstance(adviser, Exact | _Network)

    def judge(self, hand: Hand, number: int) -> Judged | None:
        """What move `number`, from 0, of a hand cost; None where there was no choice."""
        found = self._look(hand, number, 0)
        if found is None or found.cost is None or found.cost <= self.limits.fine or not self._draws:
            return found
        again = self._look(hand, number, 1)
        if again is None or again.cost is None:
            return found
        values = {each.action: each.value for each in again.worths}
        best, played = values[found.worths[0].action], values[found.action]
        if best is None or played is None:
            return found
        # The best of the first look stays first: what was second is told by the same draws that measure it.
        first = [each for each in again.worths if each.action == found.worths[0].action]
        rest = [each for each in again.worths if each.action != found.worths[0].action]
        return Judged(again.number, again.seat, again.action, (*first, *rest), max(0.0, best - played))

    def _look(self, hand: Hand, number: int, look: int) -> Judged | None:
        move = hand.moves[number]
        mask = int(hand.game.legal(move.before)[0])
        legal = [action for action in range(hand.game.actions) if mask >> action & 1]
        if len(legal) < 2:
            return None
        return judged_of(number, move, worths_by(self._adviser, hand, number, move.before, legal, look))

    def grade(self, judged: Judged) -> str | None:
        """One of GRADES; None for a decision whose cost is not known."""
        return None if judged.cost is None else self.limits.grade(judged.cost)


def grader_of(game: Game, by: str, device: torch.device, limits: list[float] | None) -> Grader:
    """The grader of a game under its options. Raises SettingsError, naming `by`, for one that cannot judge it."""
    by = _with_options(game, by)
    if by != AUTO:
        adviser = _adviser(game, by, device)
        return Grader(by, adviser, _limits(game, adviser, limits))
    names = _SMALL if game.model is not None else presentation_of(game).judging.graders
    problem = SettingsError("by", f"no player here can judge {game.name}", "name a player that gives values")
    for name in names:
        try:
            adviser = _adviser(game, name, device)
        except UserError as error:
            problem = SettingsError.of(error, "by")
        else:
            return Grader(name, adviser, _limits(game, adviser, limits))
    raise problem


def _with_options(game: Game, by: str) -> str:
    """The player with the options that it has as a grader, unless `by` gives them."""
    spec = _spec(by)
    if spec is None:
        return by
    given = presentation_of(game).judging.options.get(spec.name, {})
    return (
        by
        if spec is None or not given
        else str(Spec(spec.name, spec.argument, {**spec.options, **given, **spec.options}))
    )


def _is_cheating(name: str) -> bool:
    spec = _spec(name)
    return spec is not None and spec.name == CHEATING


def _limits(game: Game, adviser: Adviser, chosen: list[float] | None) -> Limits:
    return limits_of(game, adviser.unit) if chosen is None else Limits(*chosen)


def _adviser(game: Game, by: str, device: torch.device) -> Adviser:
    spec = _spec(by)
    if spec is not None and spec.argument is None and spec.name in (EXACT, CHEATING):
        return _solver(game, spec)
    try:
        game = _as_learned(game, by)
        player = load_player(game, by, device)
    except SettingsError as error:
        raise SettingsError("by", error.problem, error.hint) from None
    adviser = adviser_of(game, player)
    if adviser is None and hasattr(player, "values"):
        adviser = _network(game, by, device)
    if adviser is None:
        raise SettingsError(
            "by", f"{by} gives no values", "name exact, champion, search(RUN) or monte_carlo:samples=1000"
        )
    return presentation_of(game).judging.refined(adviser)


def _as_learned(game: Game, by: str) -> Game:
    """The game with what records do not say as the network that grades has learned it.

    Raises CheckpointError for a file that is damaged.
    """
    unrecorded = presentation_of(game).judging.unrecorded
    path = file_of(game, by) if unrecorded else None
    if path is None or path.suffix in TABLES:
        return game
    if path.suffix == champion.SUFFIX:
        learned = champion.read(path).settings.game
    else:
        learned = checkpoint.load_named(path)[1].get("settings", {}).get("game", {})
    unsaid = {name: learned[name] for name in unrecorded if name in learned}
    return game.configure(asdict(game.options) | unsaid)


def _spec(by: str) -> Spec | None:
    try:
        return parse_spec(by)
    except ValueError as error:
        raise SettingsError("by", error) from None


def _solver(game: Game, spec: Spec) -> Adviser:
    if game.model is not None and spec.name == EXACT:
        if spec.options:
            raise SettingsError("by", f"exact has no options for {game.name}")
        return Exact(game_defaults(game.name) | asdict(game.options))
    solver = presentation_of(game).judging.solvers.get(spec.name)
    if solver is None:
        there = "an exact solution" if spec.name == EXACT else "a solver of open cards"
        raise SettingsError("by", f"{game.name} has not {there}", "name champion, search(RUN) or monte_carlo")
    try:
        options, make = solver
        return make(read_options(options, spec))
    except ValueError as error:
        raise SettingsError("by", error) from None


class _Network:
    """The values of a network itself, times `scale` and above `offset`: in the unit of the game. See `Adviser`."""

    def __init__(self, network: Any, unit: str, scale: float, offset: float) -> None:
        self._network, self.unit, self._scale, self._offset = network, unit, scale, offset

    def values(self, game: Game, state: States, generator: NDArray[np.uint64]) -> NDArray[np.float64]:
        """See `Adviser`."""
        found: NDArray[np.float64] = self._network.values(Decisions(game, state, THE_ONE).observation)[0]
        return self._offset + self._scale * found.astype(np.float64)


def _network(game: Game, by: str, device: torch.device) -> Adviser:
    path, network, settings = load_learned(game, by, device, "by")
    reward = settings.reward_name(game)
    units = presentation_of(game).judging.units(settings.load_game())
    if reward in units:
        return _Network(network, *units[reward])
    if game.model is not None:
        return _Network(network, "result", 1.0, 0.0)
    raise SettingsError("by", f"{path} has learned the reward {reward}, whose values are no {game.unit}")
