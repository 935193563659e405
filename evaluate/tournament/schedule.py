"""Schedule of a tournament: the next batch to play, and when a pair has played enough."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from busso.cards.duplicate import Duel
from busso.evaluate.tournament.batches import Batch, Played, Timing
from busso.evaluate.tournament.settings import Pair


@dataclass(frozen=True)
class Plan:
    """Amount of play for each pair: all `deals`, or batches until the interval is narrow enough.

    `until` is the half-width of the 95% interval of the share of games won. The first `records` deals are recorded.
    """

    deals: int
    batch: int
    until: float | None = None
    records: int = 0

    @property
    def batches(self) -> int:
        """Maximum number of batches of a pair; the last may be shorter."""
        return -(-self.deals // self.batch)

    def at(self, pair: Pair, number: int) -> Batch:
        """Return a batch of a pair, by number."""
        first = number * self.batch
        deals = min(self.batch, self.deals - first)
        return Batch(pair, first, deals, min(deals, max(0, self.records - first)))


@dataclass
class PairState:
    """Played batches of a pair: `parts` in order without gaps, and `early` ones beyond the first gap."""

    pair: Pair
    plan: Plan
    parts: list[Played] = field(default_factory=list)
    early: dict[int, Played] = field(default_factory=dict)
    handed: int = 0  # batches below this number are handed out
    settled: bool = False
    half_width: float = math.inf  # of the interval so far, where `until` asks for one

    def add(self, played: Played) -> None:
        """Add a batch; batches beyond the one that settles the pair are never counted."""
        self.early[played.batch.first // self.plan.batch] = played
        while not self.settled and len(self.parts) in self.early:
            self.parts.append(self.early.pop(len(self.parts)))
            self.settled = self._enough()

    def _enough(self) -> bool:
        if self.plan.until is not None:
            self.half_width = self.duel.win_rate.half_width
            if self.half_width <= self.plan.until:
                return True
        return len(self.parts) == self.plan.batches

    def next_number(self) -> int:
        """Return the number of the first batch that is neither running nor played."""
        number = max(self.handed, len(self.parts))
        while number in self.early:
            number += 1
        return number

    @property
    def duel(self) -> Duel:
        """Result of the batches that count; at least one must have been played."""
        duels = [part.duel for part in self.parts]
        even = math.fsum(duel.even * duel.wins.size for duel in duels) / self.deals
        wins, own, other = (
            np.concatenate([getattr(duel, name) for duel in duels]) for name in ("wins", "own", "other")
        )
        return Duel(wins, own, other, even)

    @property
    def deals(self) -> int:
        """Number of deals that count."""
        return sum(part.batch.deals for part in self.parts)

    @property
    def spent(self) -> tuple[Timing, Timing]:
        """Cost of each player's decisions in the batches that count."""
        first, second = (sum((part.spent[side] for part in self.parts), Timing()) for side in (0, 1))
        return first, second

    @property
    def needed(self) -> int:
        """Estimated final number of batches, as intervals shrink by 1 / sqrt(deals)."""
        if self.settled:
            return len(self.parts)
        if self.plan.until is None:
            return self.plan.batches
        if not self.parts:
            return 1
        wanted = math.ceil(self.deals * (self.half_width / self.plan.until) ** 2 / self.plan.batch)
        return min(self.plan.batches, max(len(self.parts) + 1, wanted))

    @property
    def seconds_left(self) -> float:
        """Estimated seconds for the remaining deals; 0 before the first batch."""
        played = [*self.parts, *self.early.values()]
        if not played or self.settled:
            return 0.0
        each = sum(part.seconds for part in played) / sum(part.batch.deals for part in played)
        return each * max(0, min(self.needed * self.plan.batch, self.plan.deals) - self.deals)


class Schedule:
    """All pairs of a tournament; results do not depend on the number of workers or the order in which batches end."""

    def __init__(self, pairs: Sequence[Pair], plan: Plan) -> None:
        self.plan = plan
        self.states = {pair: PairState(pair, plan) for pair in pairs}

    @property
    def done(self) -> bool:
        """True once every pair is settled."""
        return all(state.settled for state in self.states.values())

    @property
    def settled(self) -> int:
        """Number of settled pairs."""
        return sum(state.settled for state in self.states.values())

    @property
    def deals(self) -> int:
        """Number of deals that count, over all pairs."""
        return sum(state.deals for state in self.states.values())

    @property
    def total(self) -> int:
        """Estimated final number of deals."""
        return sum(min(state.needed * self.plan.batch, self.plan.deals) for state in self.states.values())

    def seconds_left(self) -> float:
        """Return the estimated seconds that one process needs for the rest."""
        return sum(state.seconds_left for state in self.states.values())

    def add(self, played: Played) -> bool:
        """Add a played batch and return whether it settled its pair."""
        state = self.states[played.batch.pair]
        before = state.settled
        state.add(played)
        return state.settled and not before

    def known(self, batch: Batch) -> bool:
        """Return whether this is a batch of the tournament, which `add` accepts."""
        return batch.pair in self.states and batch == self.plan.at(batch.pair, batch.first // self.plan.batch)

    def next(self) -> Batch | None:
        """Return the next batch, first of those certainly needed, then of those possibly needed; None if all run."""
        numbers = {state.pair: state.next_number() for state in self.states.values() if not state.settled}
        left = [self.states[pair] for pair, number in numbers.items() if number < self.plan.batches]
        if not left:
            return None
        chosen = next((state for state in left if numbers[state.pair] < state.needed), None)
        chosen = chosen or min(left, key=lambda state: numbers[state.pair] - state.needed)
        number = numbers[chosen.pair]
        chosen.handed = number + 1
        return self.plan.at(chosen.pair, number)
