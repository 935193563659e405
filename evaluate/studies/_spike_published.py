"""What the published study of Corellian Spike says, and what our page says about it."""

from __future__ import annotations

from dataclasses import dataclass

INTERMEDIATE = 25
RUNS = ("report_2p_credits", "report_2p_weighted", "report_4p_weighted")


@dataclass(frozen=True)
class Published:
    """What the study says of a pair; None where it does not say. Hands are shares of the hands played."""

    first_credits: float | None = None
    second_credits: float | None = None
    first_hands: float | None = None
    second_hands: float | None = None
    busts: tuple[int, int] | None = None


@dataclass(frozen=True)
class Pair:
    """A line of a table: who plays whom at how many seats."""

    first: str
    second: str
    seats: int
    published: Published


CREDITS, WEIGHTED, FOUR = RUNS
AGAINST_OTHERS = (
    Pair(CREDITS, "random", 2, Published(35.6, None, 0.90, None, (0, 499))),
    Pair(CREDITS, "initial", 2, Published(-2.4, None, 0.64, None, (17, 0))),
    Pair(CREDITS, f"{CREDITS}@{INTERMEDIATE}", 2, Published(1.0, None, 0.49)),
    Pair(CREDITS, "cautious", 2, Published()),
    Pair(WEIGHTED, "random", 2, Published(38.4, None, 0.95)),
    Pair(WEIGHTED, "initial", 2, Published(-0.1, None, 0.63)),
    Pair(WEIGHTED, f"{WEIGHTED}@{INTERMEDIATE}", 2, Published(-0.8, None, 0.49)),
    Pair(WEIGHTED, CREDITS, 2, Published(0.6, None, 0.54)),
    Pair(WEIGHTED, "cautious", 2, Published()),
)
TWO_AND_FOUR = (
    Pair(WEIGHTED, FOUR, 2, Published(18.3, -18.3, 0.64, 0.36)),
    Pair(WEIGHTED, FOUR, 4, Published(1.7, -1.6, 0.27, 0.26)),
    Pair(WEIGHTED, FOUR, 8, Published(-1.2, 1.0, 0.12, 0.14)),
)

HEAD = """\
# Corellian Spike: the published study and our runs of it

{games:,} games of ten hands for each pair, players seated at random. Credits are won per game by a seat of the first
player (what the second wins is the opposite), hands are the share of all hands that such a seat wins, and busts are
games in which a seat of the first / second player lost all. `@{intermediate}` is the policy after so many iterations,
and `no fold` our runs whose exploration never folds. Runs with {seeds} seeds: of several, the mean and in brackets the
least and the greatest; of one, a 95% interval over games. Those of another seed than 1 are learned with, for example,
`python -m train algo=q_learning game=spike experiment=report_2p_credits seed=2 name=report_2p_credits_seed2`.
"""

EXPLANATION = """\
## Where ours differ, and why

- **Exploration and folding.** Our runs draw from all legal actions when they explore. The `no fold` columns repeat
  them with exploration that never draws folding, and nothing else changed. Against iteration {intermediate}, against
  the other reward and at two seats their shares of hands come nearer to the published ones; against `random` and
  `initial` they go further away. Exploration that never tried folding would be consistent with the former alone.
- **Against `initial` and `random`.** Shares of hands agree with the published ones; our credits are higher in both
  columns, and nothing in the published description accounts for that.
- **Two- and four-player policies.** A pool of four players never holds less than 8 credits, so the four-player policy
  has never met the pool of 4 with which two players begin, and plays the initial policy there. At 4 seats the
  published shares of a seat, 27% and 26%, add up to more than all hands, so they were not measured as ours are; in
  ours the four-player policy is the better one at 4 seats as it is, in both, at 8.
- **Chance.** Intervals are 95% over games. Runs with other seeds differ by more than that, because the greedy policy
  still changes in thousands of states with every iteration.
"""
