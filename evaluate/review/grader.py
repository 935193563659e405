"""Grader of decisions: the adviser that `by` names for each game, a second look at mistakes, and the tallies."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace

import numpy as np
import torch

from busso.base.errors import InputError, UserError
from busso.cards.game import Game
from busso.cards.hand import Hand
from busso.cards.player_specs import PlayerSpec, read_options
from busso.cards.presentation import Adviser, Row, presentation_of
from busso.command.settings.checks import SettingsError
from busso.command.settings.trusted import group_of
from busso.evaluate.recorded import InvalidRecord, RecordedHand
from busso.evaluate.review.advisers import (
    BEST,
    EXACT,
    Evaluation,
    ExactAdviser,
    Limits,
    NetworkAdviser,
    Sampler,
    adviser_by,
    judged_by,
    limits_of,
    valued_player,
    valuing,
)
from busso.evaluate.review.settings import AUTO
from busso.train.players import champion_file as champion
from busso.train.players.resolve import ResolvedPlayer
from busso.train.run import checkpoint

CHEATING = "cheating"


class Grader:
    """Grader of one game's decisions by the player `name`; `limits` turn costs into grades.

    Sampled values are noisy, and the greatest of several is biased upwards. A decision that seems worse than fine is
    therefore valued again with fresh samples, and its cost is taken from these, against the action that was best
    before. Values without samples (of exact solutions and networks) are computed once.
    """

    def __init__(self, name: str, adviser: Adviser, limits: Limits, cheats: bool = False) -> None:
        self.name, self.unit, self.limits, self.cheats = name, adviser.unit, limits, cheats
        self._adviser = adviser
        self._draws = not isinstance(adviser, ExactAdviser | NetworkAdviser)

    def judge(self, hand: Hand, number: int) -> Evaluation | None:
        """Return the cost of move `number`, from 0, of a hand; None for a forced move."""
        move = hand.moves[number]
        found = judged_by(self._adviser, hand, number, move)
        if found is None or found.cost is None or found.cost <= self.limits.fine or not self._draws:
            return found
        again = judged_by(self._adviser, hand, number, move, look=1)
        if again is None or again.cost is None:
            return found
        values = {each.action: each.value for each in again.worths}
        best, played = values[found.worths[0].action], values[found.action]
        if best is None or played is None:
            return found
        # The first look's best stays first: choosing and measuring by the same samples would be biased again.
        worths = sorted(again.worths, key=lambda each: each.action != found.worths[0].action)
        return replace(again, worths=tuple(worths), cost=max(0.0, best - played))

    def grade(self, judged: Evaluation) -> str | None:
        """Return the grade, one of GRADES; None for a decision of unknown cost."""
        return None if judged.cost is None else self.limits.grade(judged.cost)


def grader_of(game: Game, by: str, device: torch.device, limits: list[float] | None) -> Grader:
    """Return the grader of a game under its options. Raises SettingsError naming `by` if the player cannot judge it."""
    names: Sequence[str] = [by]
    if by == AUTO:
        names = (EXACT,) if game.model is not None else presentation_of(game).judging.graders
    problem: UserError = SettingsError("by", f"no player here can judge {game.name}", "name a player that gives values")
    for name in names:
        try:
            spec = PlayerSpec.parse(name)
            adviser = _adviser(game, spec, device)
        except UserError as error:
            problem = error
        except InputError as error:
            problem = SettingsError("by", error)
        else:
            grades = limits_of(game, adviser.unit) if limits is None else Limits(*limits)
            return Grader(str(spec), adviser, grades, cheats=spec.who == CHEATING)
    raise problem


def _adviser(game: Game, spec: PlayerSpec, device: torch.device) -> Adviser:
    if spec.who in (EXACT, CHEATING):
        return _solver(game, spec)
    player = valued_player(game, spec, "by")
    game = _as_learned(game, player)
    adviser = adviser_by(game, player, lambda: device, "by")
    return presentation_of(game).judging.refined(adviser) if isinstance(adviser, Sampler) else adviser


def _as_learned(game: Game, player: ResolvedPlayer) -> Game:
    """Return the game with unrecorded options as in the grading network's training. Raises CheckpointError."""
    unrecorded = presentation_of(game).judging.unrecorded
    if not unrecorded or player.path is None:
        return game
    if player.path.suffix == champion.SUFFIX:
        learned = champion.read(player.path).settings.game
    else:
        learned = checkpoint.load_named(player.path)[1].get("settings", {}).get("game", {})
    unsaid = {name: learned[name] for name in unrecorded if name in learned}
    return game.configure(asdict(game.options) | unsaid)


def _solver(game: Game, spec: PlayerSpec) -> Adviser:
    if spec.of is not None:
        raise SettingsError("by", f"{spec}: {spec.of!r} is not key:value")
    if game.model is not None and spec.who == EXACT:
        if spec.options:
            raise SettingsError("by", f"exact has no options for {game.name}")
        return ExactAdviser(group_of(game))
    solver = presentation_of(game).judging.solvers.get(spec.who)
    if solver is None:
        there = "an exact solution" if spec.who == EXACT else "a solver of open cards"
        raise SettingsError("by", f"{game.name} does not have {there}", f"name a network, or {valuing(game)}")
    options, make = solver
    return make(read_options(options, spec))


@dataclass(frozen=True)
class Decision:
    """A decision with what the seat saw and its grade, None if its cost is unknown."""

    judged: Evaluation
    grade: str | None
    board: tuple[Row, ...]


@dataclass(frozen=True)
class ReviewedHand:
    """A hand of the file with the decisions that had a choice."""

    recorded: RecordedHand
    grader: Grader
    decisions: list[Decision]
    seats: tuple[int, ...]  # graded seats

    @property
    def hand(self) -> Hand:
        """Hand that was graded."""
        return self.recorded.hand

    @property
    def taken(self) -> list[int]:
        """Seats that somebody has."""
        seats: list[int] = np.flatnonzero(self.hand.game.occupied(self.hand.start)[0]).tolist()
        return seats

    @property
    def grades(self) -> dict[int, str | None]:
        """Grades by the number of the move; forced moves have none."""
        return {each.judged.number: each.grade for each in self.decisions}

    def who(self, seat: int) -> str:
        """Return the name of a seat's player, or `seat N` if the record has no names."""
        return self.recorded.names[seat] if self.recorded.names else f"seat {seat}"

    def action(self, action: int) -> str:
        """Return the short name of an action."""
        return presentation_of(self.hand.game).short(self.hand.game.action_text(action))


Reviewed = ReviewedHand | InvalidRecord


@dataclass
class Tally:
    """Row of the summary: decisions of one seat or player in a game. `lost` is in `unit`."""

    game: str
    who: str
    unit: str
    hands: int = 0
    grades: Counter[str] = field(default_factory=Counter)
    unknown: int = 0
    lost: float = 0.0

    @property
    def decisions(self) -> int:
        """Number of graded decisions."""
        return sum(self.grades.values())

    @property
    def lost_per_hand(self) -> float:
        """Mean cost per hand of the decisions that were not the best."""
        return self.lost / self.hands


def tallies(reviewed: Iterable[Reviewed]) -> list[Tally]:
    """Return a row for each game and seat, or player if the records have names, in order.

    Seats of the same name share a row; a hand in which they play together counts once.
    """
    found: dict[tuple[str, str, str], Tally] = {}
    for each in reviewed:
        if isinstance(each, InvalidRecord):
            continue
        name, unit = each.hand.game.name, each.grader.unit
        for person in dict.fromkeys(map(each.who, each.seats)):
            found.setdefault((name, person, unit), Tally(name, person, unit)).hands += 1
        for decision in each.decisions:
            tally = found[name, each.who(decision.judged.seat), unit]
            if decision.grade is None or decision.judged.cost is None:
                tally.unknown += 1
                continue
            tally.grades[decision.grade] += 1
            if decision.grade != BEST:  # a cost within the limit of BEST is noise
                tally.lost += decision.judged.cost
    return list(found.values())


def decided(recorded: RecordedHand, grader: Grader, number: int) -> Decision | None:
    """Grade move `number`, from 0; None for a forced move."""
    judged = grader.judge(recorded.hand, number)
    if judged is None:
        return None
    rows = presentation_of(recorded.hand.game).rows(recorded.hand.until(number), judged.seat)
    return Decision(judged, grader.grade(judged), tuple(rows))
