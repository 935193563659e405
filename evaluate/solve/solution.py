"""Exact solution of a small game, and its text. The solver is imported late because Numba would delay --help."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from busso.cards.game import Game
from busso.cards.mdp import END, NOWHERE, Model, StateGrid, reachable
from busso.command.settings.checks import SettingsError
from busso.command.settings.game import load_configured_game

if TYPE_CHECKING:
    from busso.train.tabular.algorithms import Solution


@dataclass(frozen=True)
class Solved:
    """A game with its exact process, optimal play, and the outcome probabilities under it, `[states, outcomes]`."""

    game: Game
    reward: str
    model: Model
    solution: Solution
    outcomes: NDArray[np.float64]

    def action(self, state: int) -> str:
        """Return the name of the best action."""
        return self.game.action_text(int(self.solution.policy[state]))

    @property
    def expected(self) -> float:
        """Expected result of optimal play over all deals."""
        from busso.train.tabular.algorithms import expected_reward

        return expected_reward(self.model.mdp, self.solution.values)

    def ends(self, state: int) -> bool:
        """Return whether the hand is decided after the best action."""
        branches = (state, self.solution.policy[state])
        possible = self.model.mdp.probability[branches] > 0
        return bool((self.model.mdp.successor[branches][possible] == END).all())


def solve(settings: dict[str, Any], watch: Callable[[int], None] = lambda rounds: None) -> Solved:
    """Solve a game by policy iteration; `watch` gets each round. Raises SettingsError if it has no exact process."""
    from busso.train.tabular.algorithms import outcome_probabilities, policy_iteration

    game = load_configured_game(settings)
    reward = str(settings.get("reward", next(iter(game.rewards))))
    if game.model is None:
        raise SettingsError("game", f"{game.name} cannot be solved exactly: its states cannot be enumerated")
    model = game.model(game.options, reward)
    solution = policy_iteration(model.mdp, watch=watch)
    return Solved(game, reward, model, solution, outcome_probabilities(model, solution.policy))


def hands_text(solved: Solved, start: int) -> list[str]:
    """Return lines with the best action and its outcome for every hand reachable from `start`."""
    model, policy = solved.model, solved.solution.policy
    first = np.array([start])
    by_play = reachable(model.mdp, first, policy)
    rows = [["hand", "decision", *model.outcomes, "expected", "optimal play"]]
    rows += [
        [model.state_text(state), *_numbers(solved, state), "reached" if by_play[state] else "never reached"]
        for state in np.flatnonzero(reachable(model.mdp, first)).tolist()
    ]
    return [title(solved), "", *aligned(rows), "", f"{model.state_text(start)}: {advice(solved, start)}"]


def advice(solved: Solved, state: int) -> str:
    """Describe the best action and its outcome: `hit: win 0.51, ..., expected +0.12`."""
    decision, *numbers = _numbers(solved, state)
    names = [*solved.model.outcomes, "expected"]
    return f"{decision}: " + ", ".join(f"{name} {number}" for name, number in zip(names, numbers, strict=True))


def _numbers(solved: Solved, state: int) -> list[str]:
    chances = [f"{chance:.6f}" for chance in solved.outcomes[state]]
    return [solved.action(state), *chances, f"{solved.solution.values[state]:+.6f}"]


def game_text(solved: Solved) -> list[str]:
    """Return lines with the tables and value of optimal play, and the values of fixed policies."""
    from busso.train.tabular.algorithms import evaluate_policy, expected_reward

    model, solution = solved.model, solved.solution
    lines = [title(solved)]
    for layout in model.layouts:
        lines += ["", f"{layout.title}: decision ({layout.row_label} down, {layout.column_label} across)", ""]
        lines += layout_text(layout, lambda state: solved.action(state)[0].upper())
        lines += ["", f"{layout.title}: expected result", ""]
        lines += layout_text(layout, lambda state: f"{solution.values[state]:+.3f}")
    chances = model.mdp.start @ solved.outcomes + model.decided
    summary = ", ".join(f"{name} {chance:.6f}" for name, chance in zip(model.outcomes, chances, strict=True))
    lines += ["", f"optimal play over all deals: {summary}, expected {solved.expected:+.6f}"]
    lines += ["", "fixed policies over all deals", ""]
    rows = [["policy", "expected"]]
    for name, policy in model.policies.items():
        values = evaluate_policy(model.mdp, np.where(solution.policy < 0, solution.policy, policy))
        rows.append([name, f"{expected_reward(model.mdp, values):+.6f}"])
    return lines + aligned(rows)


def title(solved: Solved) -> str:
    """Return the game with its options and reward, without the discount, which changes no exact value."""
    names = [field.name for field in fields(solved.game.options) if field.name != "discount"]
    options = ", ".join(f"{name} {getattr(solved.game.options, name)}" for name in names)
    return f"{solved.game.name}: {options}, reward {solved.reward}"


def layout_text(layout: StateGrid, text: Callable[[int], str]) -> list[str]:
    """Return the lines of a layout, each state as returned by `text`."""
    rows = [["", *layout.columns]]
    for name, states in zip(layout.rows, layout.states.tolist(), strict=True):
        rows.append([name, *("" if state == NOWHERE else text(state) for state in states)])
    return aligned(rows)


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return aligned rows as lines, the first column flush left, the others right."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return [
        "  ".join(
            cell.ljust(width) if k == 0 else cell.rjust(width)
            for k, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    ]


def state_rows(solved: Solved, start: int | None = None) -> list[dict[str, Any]]:
    """Return all states reachable in the game, or from `start`, with decision and outcome probabilities."""
    model, rows = solved.model, []
    first = np.flatnonzero(model.mdp.start) if start is None else np.array([start])
    for state in np.flatnonzero(reachable(model.mdp, first)).tolist():
        chances = dict(zip(model.outcomes, solved.outcomes[state].tolist(), strict=True))
        named = {"state": model.state_text(state), "decision": solved.action(state)}
        rows.append(named | chances | {"expected": float(solved.solution.values[state])})
    return rows
