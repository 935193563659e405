"""Comparison of a learned table or network of a small game with the exact values, in numbers and pictures."""

import json
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from busso.cards.mdp import END, Mdp, legal, reachable
from busso.command.console import as_json
from busso.command.settings.checks import SettingsError
from busso.evaluate.solve.plots import draw, make_folder
from busso.evaluate.solve.solution import Solved, title
from busso.train.players.trained import holds_table, load_network
from busso.train.run import checkpoint
from busso.train.settings.run import RunSettings
from busso.train.tabular.algorithms import Errors, ExactValues, learned_policy
from busso.train.tabular.trainer import LearnedTable, error_lines, exact_for, table_of

Numbers = NDArray[np.float64]


@dataclass(frozen=True)
class ExactComparison:
    """Learned and exact values by state of the model; policies are None if a given policy was evaluated."""

    title: str
    lines: list[str]  # errors, as text
    values: Numbers
    exact_values: Numbers
    policy: NDArray[np.int64] | None
    exact_policy: NDArray[np.int64] | None


def compare(solved: Solved, source: Path, folder: str | None) -> None:
    """Print the errors of a run folder or checkpoint and draw learned and exact values. Raises as `beside_exact`."""
    found = beside_exact(solved, source)
    mdp, text = solved.model.mdp, solved.model.state_text
    learned = [None if np.isnan(value) else float(value) for value in found.values]
    states = np.flatnonzero(reachable(mdp, np.flatnonzero(mdp.start))).tolist()
    rows = [{"state": text(k), "learned": learned[k], "exact": float(found.exact_values[k])} for k in states]
    if not as_json(json.dumps(rows, indent=2)):
        print("\n".join((found.title, *found.lines)))
    target = make_folder(folder or (source if source.is_dir() else source.parent) / "pictures")
    for layout in solved.model.layouts:
        draw(solved, layout, found.values, found.policy, target, "learned")
        draw(solved, layout, found.exact_values, found.exact_policy, target, "exact")
        draw(solved, layout, np.abs(found.values - found.exact_values), None, target, "error")
    print(f"written to {target}", file=sys.stderr)


def beside_exact(solved: Solved, source: Path) -> ExactComparison:
    """Compare a run folder or checkpoint of a learned table or network with the exact values.

    Raises SettingsError for another game, CheckpointError for a file with neither table nor network.
    """
    path, state = checkpoint.load_named(source)
    if holds_table(state):
        return _table_beside(solved, source, table_of(path, state))
    return _network_beside(solved, source, path, state)


def _check_same(solved: Solved, learned: RunSettings, source: Path) -> None:
    same = learned.game_name == solved.game.name and learned.load_game().options == solved.game.options
    if not same or learned.reward_name(solved.game) != solved.reward:
        raise SettingsError("table", f"{source} was learned with {learned.game}", "give the same game and options")


def _table_beside(solved: Solved, source: Path, table: LearnedTable) -> ExactComparison:
    learned = table.settings
    _check_same(solved, learned, source)
    exact = exact_for(learned, solved.model)
    values, policy = table.values[:, 0], None
    if learned.policy is None:
        policy = learned_policy(solved.model.mdp, table.values)
        values = np.take_along_axis(table.values, np.maximum(policy, 0)[:, None], axis=1)[:, 0]
    errors = exact.errors(table.values, table.visits, learned.min_visits)
    return ExactComparison(
        f"{source}: {learned.algo} of {learned.policy or 'the optimal policy'}, {title(solved)}",
        [*error_lines(errors, learned.min_visits, solved.model.discount), _expected(exact)],
        values,
        exact.values,
        policy,
        None if policy is None else exact.policy,
    )


def _expected(exact: ExactValues) -> str:
    return f"exact expected result over all deals: {exact.reward:+.6f}"


@dataclass(frozen=True)
class ComparedNetwork:
    """Values of a network in the decisions of a game, by observations as numbered in `Observed`."""

    values: Numbers  # [observed states, actions]
    policy: NDArray[np.int64]  # [observed states]
    errors: Errors  # of the values at `gamma`; share and loss of the policy are undiscounted
    decisions: float  # share of optimal actions among the decisions in games of its own policy
    mean_in_games: float  # mean error of the values over these decisions
    met: int  # reachable observed states


def measure(solved: Solved, values: Numbers, gamma: float) -> ComparedNetwork:
    """Compare action values that were learned with discount `gamma` with the exact ones.

    Errors are against exact values at `gamma`; the loss of the greedy policy is undiscounted, as for tables.
    """
    mdp = solved.model.observed().mdp
    exact = ExactValues(replace(solved.model, mdp=mdp), discount=gamma)
    errors = exact.errors(values, exact.met[:, None].astype(np.int64), 1)
    policy = learned_policy(mdp, values)
    often = visits(mdp, np.eye(values.shape[1])[np.maximum(policy, 0)])
    often /= often.sum()
    distance = np.abs(np.where(legal(mdp), values, -np.inf).max(axis=1)[exact.met] - exact.values[exact.met])
    share, mean = float(often[exact.optimal(policy)].sum()), float(often[exact.met] @ distance)
    return ComparedNetwork(values, policy, errors, share, mean, int(exact.met.sum()))


def visits(mdp: Mdp, chances: Numbers) -> Numbers:
    """Return the expected visits to each state in a game, `[states]`, for the policy `chances[states, actions]`."""
    here: Numbers = mdp.start
    total = here
    flow = mdp.probability * chances[:, :, None]
    inner = (mdp.successor != END) & (flow > 0)
    successor = mdp.successor[inner]
    while here.any():
        moved = (flow * here[:, None, None])[inner]
        here = np.bincount(successor, moved, mdp.start.size).astype(np.float64)
        total = total + here
    return total


def _network_beside(solved: Solved, source: Path, path: Path, state: dict[str, Any]) -> ExactComparison:
    player, settings = load_network(solved.game, path, state, torch.device("cpu"), key="table")
    _check_same(solved, settings, source)
    observed, gamma = solved.model.observed(), settings.learner.gamma
    if settings.learner.discount_per != "decision" and gamma != 1:
        raise SettingsError(
            "table", f"{source} was learned with a discount per reward; exact values have one per decision"
        )
    learned = measure(solved, player.values(solved.game.observe(observed.records)).astype(np.float64), gamma)
    decisions = state.get("env_steps", state.get("counters", {}).get("env_steps", 0))  # in a best network, in others
    exact = ExactValues(solved.model, discount=gamma)
    shown, policy = _by_state(solved, learned)
    return ExactComparison(
        f"{source}: network of {settings.algo} after {decisions:,} decisions, {title(solved)}",
        [*_network_lines(learned, gamma), _expected(exact)],
        shown,
        exact.values,
        policy,
        exact.policy,
    )


def _network_lines(learned: ComparedNetwork, gamma: float) -> list[str]:
    errors = learned.errors
    return [
        f"observations with a choice of actions: {learned.met:,}",
        f"with the optimal action: {errors.optimal_share:.2%}; of the decisions in its games: {learned.decisions:.2%}",
        f"loss of expected reward per game: {errors.loss:.6f}",
        f"discount of its values: {gamma:g}",
        f"greatest error: {errors.greatest:.5f}",
        f"mean error: {errors.mean:.5f}; over the decisions in its games: {learned.mean_in_games:.5f}",
    ]


def _by_state(solved: Solved, learned: ComparedNetwork) -> tuple[Numbers, NDArray[np.int64]]:
    """Return values and actions by state of the model: means and majorities over the observations of each state.

    Observations are weighted by their frequency under random play, which reaches all of them.
    """
    observed, states = solved.model.observed(), solved.model.states
    allowed = legal(observed.mdp)
    weight = visits(observed.mdp, allowed / np.maximum(allowed.sum(axis=1, keepdims=True), 1))
    chosen = np.maximum(learned.policy, 0)
    best = np.take_along_axis(learned.values, chosen[:, None], axis=1)[:, 0]
    total = np.bincount(observed.state, weight, states)
    values = np.bincount(observed.state, weight * best, states) / np.where(total > 0, total, 1)
    votes = [np.bincount(observed.state, weight * (chosen == action), states) for action in range(solved.game.actions)]
    return values, np.argmax(votes, axis=0)
