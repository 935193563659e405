"""A small game: the learned policy beside the exact solution."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from busso.cards.tabular.mdp import NOWHERE, Layout
from busso.evaluate.report.content import Block, Figure, Section, Text, TextTable
from busso.evaluate.report.drawing import draw_heatmap
from busso.evaluate.solve.compare import Beside, beside_exact
from busso.evaluate.solve.solution import solve
from busso.train.run.read import Run


def section(run: Run) -> Section:
    """Errors against the exact values, and for each table of the game the learned policy beside the optimal one."""
    solved = solve(run.settings.game)
    found = beside_exact(solved, run.folder)
    rows = [line.split(": ", 1) for line in found.lines if ": " in line]
    blocks: list[Block] = [
        Text("The game has an exact solution, so these errors are those of learning, not of measuring."),
        TextTable(("", ""), rows, left=(0,)),
    ]
    if found.policy is not None and found.exact_policy is not None:
        actions = [solved.game.action_text(action) for action in range(solved.game.actions)]
        blocks += [_policies(layout, found, actions) for layout in solved.model.layouts]
    return Section("Beside the exact solution", blocks)


def _policies(layout: Layout, found: Beside, actions: Sequence[str]) -> Figure:
    assert found.policy is not None and found.exact_policy is not None
    learned, exact = (_cells(layout, policy) for policy in (found.policy, found.exact_policy))
    known = ~np.isnan(exact)
    differ = int((learned[known] != exact[known]).sum())
    panels = [_panel(layout, learned, "learned", actions, exact), _panel(layout, exact, "exact", actions, exact)]
    legend = ", ".join(f"{action[0].upper()} {action}" for action in actions)
    caption = f"{layout.title}: {legend}. In brackets: not as the exact policy, {differ} of {int(known.sum())} states."
    return Figure(f"policy-{layout.name}", draw_heatmap(f"policy-{layout.name}", panels), caption, caption)


def _cells(layout: Layout, policy: NDArray[np.int64]) -> NDArray[np.float64]:
    found = np.where(layout.states == NOWHERE, -1, policy[layout.states]).astype(np.float64)
    found[found < 0] = np.nan
    return found


def _panel(
    layout: Layout, cells: NDArray[np.float64], title: str, actions: Sequence[str], exact: NDArray[np.float64]
) -> dict[str, Any]:
    texts = [
        [_letter(cell, right, actions) for cell, right in zip(row, rights, strict=True)]
        for row, rights in zip(cells, exact, strict=True)
    ]
    return {
        "title": title,
        "cells": cells / max(1, len(actions) - 1),
        "texts": texts,
        "rows": layout.rows,
        "columns": layout.columns,
        "labels": (layout.column_label, layout.row_label),
    }


def _letter(cell: float, right: float, actions: Sequence[str]) -> str:
    if np.isnan(cell):
        return ""
    letter = actions[int(cell)][0].upper()
    return letter if cell == right else f"({letter})"
