"""Parts of a Tressette report: cards by trick, and the last tricks compared with the exact solver."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from busso.cards.duplicate import Estimate, estimate
from busso.evaluate.report.drawing import COLOURS, Numbers, new_figure, style, to_svg
from busso.evaluate.report.observing import ObservedGames, rules_choose, stacked
from busso.evaluate.report.page import Block, Figure, Section, Text, TextTable
from busso.tressette.cards import ACE, CARDS, RANKS, THREE, TWO
from busso.tressette.rules import SEATS, TRICKS
from busso.tressette.solver.double_dummy import new_table, solved_values

_ANYBODY = "a card at random"
_KINDS = ("3", "2", "ace", "king, horse or jack", "4 to 7")


@dataclass(frozen=True)
class EndgameDecisions:
    """Decisions of the last tricks in which the card matters.

    By player, `regret` are points lost, `right` is 1 for a best card; a random card has expected values.
    """

    tricks_left: NDArray[np.int64]  # [decisions], including the current one
    game: NDArray[np.int64]
    regret: Mapping[str, Numbers]  # [decisions] each
    right: Mapping[str, Numbers]
    decisions: NDArray[np.int64]  # [tricks], all with a choice, by tricks left less 1
    games: int

    def per_hand(self, name: str) -> Estimate:
        """Return the mean points lost per hand in these tricks, by all seats of the agent together."""
        return estimate(np.bincount(self.game, self.regret[name], self.games).astype(np.float64))


def solve_endgame(watched: ObservedGames, tricks: int, seed: int) -> EndgameDecisions:
    """Solve every decision with a choice in the last `tricks` with all hands open."""
    left = (CARDS - watched.states["plays"].astype(np.int64) + SEATS - 1) // SEATS
    rows = np.flatnonzero((left <= tricks) & (watched.choices > 1))
    values = solved_values(watched.states[rows], np.arange(rows.size), new_table()).astype(np.float64)
    legal = watched.legal[rows]
    best = np.where(legal, values, -np.inf).max(axis=1)
    matters = best > np.where(legal, values, np.inf).min(axis=1)
    kept, number = rows[matters], np.arange(int(matters.sum()))
    values, legal, best = values[matters], legal[matters], best[matters]
    chosen = {"the agent": watched.action[kept], "greedy": rules_choose(watched, kept, "greedy", seed)}
    regret = {name: best - values[number, cards] for name, cards in chosen.items()}
    right = {name: (lost == 0).astype(np.float64) for name, lost in regret.items()}
    count = legal.sum(axis=1)
    regret[_ANYBODY] = best - np.where(legal, values, 0).sum(axis=1) / count
    right[_ANYBODY] = (legal & (values == best[:, None])).sum(axis=1) / count
    counts = np.bincount(left[rows] - 1, minlength=tricks)
    return EndgameDecisions(left[kept], watched.game[kept], regret, right, counts, watched.games)


def section(watched: ObservedGames, tricks: int, seed: int) -> Section | None:
    """Return the section on the last tricks; None if no decision in them mattered."""
    found = solve_endgame(watched, tricks, seed)
    if not found.tricks_left.size:
        return None
    names = ("the agent", "greedy", _ANYBODY)
    parts = [(left, found.tricks_left == left) for left in np.unique(found.tricks_left)[::-1].tolist()]
    drawn = {name: [(left, float(found.regret[name][here].mean())) for left, here in parts] for name in names}
    rows = []
    for left, here in [*parts, ("all", found.tricks_left > 0)]:
        decisions = found.decisions.sum() if left == "all" else found.decisions[left - 1]
        right = [f"{found.right[name][here].mean():.1%}" for name in names]
        lost = [f"{found.regret[name][here].mean():.3f}" for name in names]
        rows.append([str(left), f"{decisions:,}", f"{here.sum():,}", *right, *lost])
    columns = ("tricks left", "with a choice", "that matter", *(f"best: {name}" for name in names))
    loses = {name: found.per_hand(name) for name in names}
    text = (
        f"Every decision with a choice in the last {tricks} tricks of {watched.games:,} hands, compared with the exact "
        "result of each legal card with best play of all four seats and all hands open. Mean loss per hand: "
        + "; ".join(f"{value.mean:.2f} ± {value.half_width:.2f} points ({name})" for name, value in loses.items())
        + ". A player that sees one hand only always loses something: compare players on the same positions."
    )
    return Section(
        f"The last {tricks} tricks, solved",
        [
            Text(text),
            Figure(
                _draw(drawn),
                "Points lost by tricks left: the agent, greedy, and a card at random.",
                "Points lost by a decision that matters, the mean, by tricks left.",
            ),
            TextTable(
                (*columns, *(f"lost: {name}" for name in names)),
                rows,
                "That matter: the legal cards do not all lead to the same points. Best: share in which a best card is "
                "played. Lost: mean points by which the card is worse than a best one. `greedy` and the card at random "
                "are asked in the positions that the agent came to.",
                left=(),
            ),
        ],
    )


def _draw(drawn: Mapping[str, list[tuple[int, float]]]) -> str:
    with style():
        figure, axes = new_figure(2.5)
        axis = axes[0, 0]
        for name, colour in zip(drawn, (COLOURS[0], COLOURS[1], COLOURS[4]), strict=True):
            left, lost = zip(*drawn[name], strict=True)
            axis.plot(left, lost, marker="o", markersize=4, color=colour, label=name)
        axis.invert_xaxis()
        axis.set_ylim(bottom=0)
        axis.set_xticks(sorted({left for line in drawn.values() for left, _ in line}))
        axis.set_xlabel("tricks left")
        axis.set_ylabel("points lost")
        figure.legend(loc="outside lower left", ncols=len(drawn))
        return to_svg(figure, "endgame")


def blocks(watched: ObservedGames) -> list[Block]:
    """Return the table of legal cards and the figure of played cards, by trick."""
    return [_legal_by_trick(watched), _played_by_trick(watched)]


def _legal_by_trick(watched: ObservedGames) -> TextTable:
    trick = watched.states["plays"].astype(np.int64) // SEATS
    leads = watched.states["plays"] % SEATS == 0
    rows = []
    for number in range(TRICKS):
        here = trick == number
        followed = watched.choices[here & ~leads]
        highest = _is_highest(watched, np.flatnonzero(here & leads))
        rows.append(
            [
                str(number + 1),
                f"{watched.choices[here & leads].mean():.1f}" if (here & leads).any() else "",
                f"{followed.mean():.1f}" if followed.size else "",
                f"{(followed == 1).mean():.0%}" if followed.size else "",
                f"{highest.mean():.0%}" if highest.size else "",
            ]
        )
    columns = (
        "trick",
        "legal cards, leading",
        "following",
        "forced, following",
        "leads the highest card left of a suit",
    )
    return TextTable(columns, rows, "Means over the decisions of each trick.", left=())


def _is_highest(watched: ObservedGames, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return whether no other seat holds a higher card of the suit that is led."""
    cards = watched.action[rows]
    others = np.bitwise_or.reduce(watched.states["hands"][rows], axis=1)
    others &= ~watched.states["hands"][rows, watched.seat[rows]]
    above = (others >> (cards.astype(np.uint64) + np.uint64(1))) & (
        (np.uint64(1) << (RANKS - 1 - cards % RANKS).astype(np.uint64)) - np.uint64(1)
    )
    none: NDArray[np.bool_] = above == 0
    return none


def _played_by_trick(watched: ObservedGames) -> Figure:
    shares = np.zeros((2 * TRICKS, len(_KINDS)))
    plays, strength = watched.states["plays"].astype(np.int64), watched.action % RANKS
    kind = np.select([strength == THREE, strength == TWO, strength == ACE, strength >= 4], [0, 1, 2, 3], 4)
    row = 2 * (plays // SEATS) + (plays % SEATS != 0)
    np.add.at(shares, (row, kind), 1)
    shares /= np.maximum(shares.sum(axis=1, keepdims=True), 1)
    names = [f"trick {k + 1}" for k in range(TRICKS)]
    panels = {"led": (names, shares[0::2]), "followed with": (names, shares[1::2])}
    svg = stacked("cards-by-trick", panels, _KINDS)
    return Figure(svg, "Kinds of cards led and followed with in each trick.", "Cards played, by trick.")
