"""One game, decision by decision, with the values of the played and the other legal actions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from busso.cards.presentation import presentation_of
from busso.evaluate.report.content import Block, Figure, Section, Text, TextTable
from busso.evaluate.report.drawing import look, new_figure, style, to_svg
from busso.evaluate.report.sections.observing import Watched

_OTHERS = 4  # that were legal, and are named beside what was played
_MOST = 80  # decisions of one game that are shown
_SMALL = 6  # games shown where a game has a decision or two


@dataclass(frozen=True)
class Remarks:
    """What a game adds: a text before the table, columns beside its decisions, and rows that stand out, with why."""

    lead: str = ""
    columns: Mapping[str, Sequence[str]] = field(default_factory=dict)
    marked: Sequence[int] = ()
    caption: str = ""


def _rows(watched: Watched) -> NDArray[np.int64]:
    """The decisions of the games that are shown, in order: the first that was watched; of games of one seat, a few."""
    rows = np.flatnonzero(watched.game < (_SMALL if watched.agent.game.seats == 1 else 1))
    return rows[np.argsort(watched.game[rows], kind="stable")]


def section(watched: Watched, unit: str, scale: float, remark: Callable[..., Remarks] | None) -> Section:
    """The games of `shown_rows`; `remark(watched, rows)` is what the game says of the decisions in the table."""
    game, rows = watched.agent.game, _rows(watched)
    shown = rows[:_MOST]
    remarks = Remarks() if remark is None else remark(watched, shown)
    blocks: list[Block] = [Text(_lead(watched, unit, remarks))]
    if watched.agent.network is not None and game.seats > 1:
        blocks.append(_figure(watched, rows, unit, scale))
    blocks.append(_table(watched, shown, scale, remarks))
    if shown.size < rows.size:
        blocks.append(Text(f"The first {shown.size} of its {rows.size} decisions."))
    one = presentation_of(game).played.capitalize()
    return Section("Games played out" if game.seats == 1 else f"{one} played out", blocks)


def _lead(watched: Watched, unit: str, remarks: Remarks) -> str:
    game, agent = watched.agent.game, watched.agent
    who = f"against `{agent.opponent_name}`, whose decisions are left out" if agent.opponent else "in all seats"
    text = f"The agent {who}." if game.seats > 1 else f"The first {_SMALL} games."
    if agent.network is not None:
        text += (
            f" A value, in {unit}, is what the seat expects from there to the end, by the network; beside it the legal "
            f"actions of the next greatest values."
        )
    text += remarks.lead
    if game.seats > 1:
        numbers = ", ".join(f"{result:g}" for result in watched.results[0][: _occupied(watched)])
        text += f" The result by seat, in {game.unit}: {numbers}."
    return text


def _occupied(watched: Watched) -> int:
    first = watched.states[watched.game == 0][:1]
    return int(watched.agent.game.occupied(first)[0].sum())


def _table(watched: Watched, rows: NDArray[np.int64], scale: float, remarks: Remarks) -> TextTable:
    game, with_values = watched.agent.game, watched.agent.network is not None
    situation = presentation_of(game).situation
    head = (["game"] if game.seats == 1 else ["seat"]) + ["situation", "plays"]
    columns = [*head, *(["value", "next best"] if with_values else ["also legal"]), *remarks.columns]
    lines = []
    for number, row in enumerate(rows.tolist()):
        seat, action = int(watched.seat[row]), int(watched.action[row])
        who = str(watched.game[row] + 1 if game.seats == 1 else seat)
        cells = [who, situation(game, watched.states[row], seat), game.action_text(action)]
        others = [other for other in np.flatnonzero(watched.legal[row]).tolist() if other != action]
        if with_values:
            values = watched.values[row] * scale
            others = sorted(others, key=lambda other: -float(values[other]))
            named = [f"{game.action_text(other)} {values[other]:+.2f}" for other in others[:_OTHERS]]
            cells += [f"{values[action]:+.2f}", _listed(named, len(others))]
        else:
            cells.append(_listed([game.action_text(other) for other in others[:_OTHERS]], len(others)))
        lines.append([*cells, *(column[number] for column in remarks.columns.values())])
    words = [1, 2, 4] if with_values else [1, 2, 3]
    return TextTable(columns, lines, remarks.caption, left=words, marked=remarks.marked)


def _listed(named: list[str], count: int) -> str:
    more = f", {count - len(named)} more" if count > len(named) else ""
    return ", ".join(named) + more


def _figure(watched: Watched, rows: NDArray[np.int64], unit: str, scale: float) -> Figure:
    """Values of what was played over the game, a line for each seat."""
    with style():
        figure, axes = new_figure(2.3)
        axis = axes[0, 0]
        seats = np.unique(watched.seat[rows])
        for number, seat in enumerate(seats.tolist()):
            mine = np.flatnonzero(watched.seat[rows] == seat)
            axis.plot(
                mine + 1,
                watched.chosen[rows[mine]] * scale,
                marker="o",
                markersize=3,
                label=f"seat {seat}",
                **look(number),
            )
        axis.axhline(0, color="#040506", linewidth=1)
        axis.set_xlim(0, rows.size + 1)
        axis.set_xlabel("decision")
        axis.set_ylabel(f"value ({unit})")
        figure.legend(loc="outside lower left", ncols=min(8, 4 + len(seats)))
        svg = to_svg(figure, "played")
    return Figure(
        "played", svg, "The value of what was played, by decision and seat.", "Values of what each seat played."
    )
