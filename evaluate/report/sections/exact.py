"""Learned policy of a small game compared with the exact solution."""

from collections.abc import Sequence

import numpy as np

from busso.cards.tabular.mdp import StateGrid
from busso.evaluate.report.content import Block, Figure, Section, Text, TextTable
from busso.evaluate.report.drawing import new_figure, style, to_svg
from busso.evaluate.solve.compare import ExactComparison, beside_exact
from busso.evaluate.solve.plots import actions_of, draw_actions, legend
from busso.evaluate.solve.solution import solve
from busso.train.run.read import Run


def section(run: Run) -> Section:
    """Return the errors against the exact values, and a figure of the learned and the optimal policy for each table."""
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


def _policies(layout: StateGrid, found: ExactComparison, actions: Sequence[str]) -> Figure:
    assert found.policy is not None and found.exact_policy is not None
    learned, exact = (actions_of(layout, policy) for policy in (found.policy, found.exact_policy))
    known = ~np.isnan(exact)
    differ, name = int((learned[known] != exact[known]).sum()), f"policy-{layout.name}"
    with style():
        figure, axes = new_figure(0.8 + 0.2 * len(layout.rows), 1, 2)
        for axis, title, cells in zip(axes.flat, ("learned", "exact"), (learned, exact), strict=True):
            draw_actions(axis, layout, cells, exact, actions, title)
        svg = to_svg(figure, name)
    what = f"not as the exact policy, {differ} of {int(known.sum())} states."
    caption = f"{layout.title}: {legend(actions)}. In brackets: {what}"
    return Figure(svg, caption, caption)
