"""Legal actions and choices of an agent by stage of the game."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.patches import Patch

from busso.cards.presentation import presentation_of
from busso.evaluate.report.content import Block, Figure, TextTable
from busso.evaluate.report.drawing import COLOURS, Numbers, new_figure, style, to_svg
from busso.evaluate.report.sections.observing import ObservedGames

_FEW = 12  # most actions that get a column each


def by_action(watched: ObservedGames) -> list[Block]:
    """Return the shares of each action by stage, as a figure and a table; empty for a game of many actions."""
    game = watched.agent.game
    if game.actions > _FEW:
        return []
    stages, names = watched.phases, presentation_of(game).phases
    labels = [game.action_text(action) for action in range(game.actions)]
    counts = np.zeros((len(names), game.actions), np.int64)
    np.add.at(counts, (stages, watched.action), 1)
    may = np.zeros_like(counts)
    np.add.at(may, stages, watched.legal.astype(np.int64))
    seen = np.flatnonzero(counts.any(axis=1)).tolist()
    rows = []
    for number in seen:
        taken = zip(counts[number], may[number], strict=True)
        shares = [f"{count / legal:.1%}" if legal else "" for count, legal in taken]
        choices = f"{watched.choices[stages == number].mean():.2f}"
        rows.append([names[number], f"{counts[number].sum():,}", choices, *shares])
    columns = ("stage", "decisions", "legal actions", *labels)
    caption = (
        "Of the decisions in which an action was legal, the share in which it was taken; legal actions on average."
    )
    used = [k for k in range(len(columns)) if any(row[k] for row in rows)]
    table = TextTable([columns[k] for k in used], [[row[k] for k in used] for row in rows], caption)
    if len(rows) < 2:
        return [table]
    panel = [row[0] for row in rows], counts[seen] / counts[seen].sum(axis=1, keepdims=True)
    svg = stacked("choices", {"": panel}, labels)
    return [Figure(svg, "Shares of the actions taken in each stage of the game.", "Actions taken, by stage."), table]


def stacked(name: str, panels: Mapping[str, tuple[Sequence[str], Numbers]], labels: Sequence[str]) -> str:
    """Draw stacked bars of shares, `{title: (rows, shares [rows, labels])}`, as SVG."""
    with style():
        most = max(len(rows) for rows, _ in panels.values())
        figure, axes = new_figure(0.9 + 0.24 * most, 1, len(panels))
        for axis, (title, (rows, shares)) in zip(axes[0], panels.items(), strict=True):
            left = np.zeros(len(rows))
            for number in range(len(labels)):
                axis.barh(range(len(rows)), shares[:, number], left=left, height=0.75, **_fill(number))
                left += shares[:, number]
            axis.set_yticks(range(len(rows)), rows)
            axis.set_ylim(len(rows) - 0.45, -0.55)
            axis.set_xlim(0, 1)
            axis.set_title(title)
            axis.xaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
            axis.grid(visible=False, axis="y")
        seen = [
            number for number in range(len(labels)) if any(shares[:, number].any() for _, shares in panels.values())
        ]
        patches = [Patch(**_fill(number)) for number in seen]
        columns = 5 if max(len(labels[number]) for number in seen) < 22 else 3
        figure.legend(patches, [labels[number] for number in seen], loc="outside lower left", ncols=columns)
        return to_svg(figure, name)


def _fill(number: int) -> dict[str, Any]:
    return {"color": COLOURS[number % len(COLOURS)], "alpha": 1.0 if number < len(COLOURS) else 0.45}
