"""Report on a run, from the data in its folder and games that its agent plays for the report."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from busso.base.errors import UserError
from busso.base.terminal import code
from busso.cards.mdp import StateGrid
from busso.cards.presentation import own_module, presentation_of
from busso.command.settings.quoting import TYPED_NETWORK
from busso.evaluate.report import calibration, games
from busso.evaluate.report.drawing import new_figure, style, to_svg
from busso.evaluate.report.observing import ObservedGames, by_action, load_agent, watch_games
from busso.evaluate.report.page import Block, Figure, Report, Section, Text, TextTable
from busso.evaluate.report.training import (
    curves_section,
    facts,
    origin_section,
    results_section,
    settings_section,
    throughput_section,
)
from busso.evaluate.solve.compare import ExactComparison, beside_exact
from busso.evaluate.solve.plots import actions_of, draw_actions, legend
from busso.evaluate.solve.solution import solve
from busso.train.run.read import Run

Say = Callable[[str], None]


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


@dataclass(frozen=True)
class ReportOptions:
    """Extent of a report: games to play, final tricks to solve, and whether to measure the stages of training."""

    games: int
    tricks: int
    seed: int
    measure: bool


def report_of(run: Run, seeds: Sequence[Run], wanted: ReportOptions, say: Say) -> Report:
    """Return the report on a run and on `seeds`, its repetitions with other seeds; `say` receives progress messages."""
    runs = [run, *seeds]
    say("reading the curves")
    about: list[Section | None] = [results_section(runs), curves_section(runs)]
    playing = list(_playing(run, wanted, say))
    if wanted.measure:
        say("measuring what limits it")
    last = [settings_section(run), throughput_section(run, wanted.measure), origin_section(run)]
    sections = [section for section in (*about, *playing, *last) if section is not None]
    return Report(f"{run.settings.game_name}: {run.name}", _lead(run, seeds), facts(run, len(runs)), sections)


def _lead(run: Run, seeds: Sequence[Run]) -> str:
    text = f"The run in {code(run.folder)}"
    if seeds:
        text += " with " + ", ".join(code(other.name) for other in seeds) + ", which differ from it in the seed only"
    return text + "."


def _playing(run: Run, wanted: ReportOptions, say: Say) -> list[Section]:
    """Return the sections that need the trained agent, or a note if it cannot be loaded."""
    try:
        if run.settings.load_game().model is not None:
            say("solving the game")
            found = [section(run)]
        else:
            found = []
        if getattr(run.settings, "policy", None) is not None:
            return found  # values of a given policy do not choose actions
        agent = load_agent(run)
    except UserError as error:
        if error.key == TYPED_NETWORK:  # the user's network file exists but must be named on the command line
            raise
        return [Section("How it plays", [Text(f"No games were played: {code(error)}.")])]
    say(f"playing {wanted.games:,} games")
    return [*found, *_sections(watch_games(agent, wanted.games, wanted.seed), wanted, say)]


def _sections(watched: ObservedGames, wanted: ReportOptions, say: Say) -> list[Section]:
    game = watched.agent.game
    own = own_module(games.__name__, game.name)
    unit, scale = presentation_of(game).units(game).get(watched.agent.reward, ("reward", 1.0))
    blocks = by_action(watched) if own is None else own.blocks(watched)
    who = f"against `{watched.agent.opponent_name}`" if watched.agent.opponent else "against itself"
    count = f"{watched.games:,} games {who}" if game.seats > 1 else f"{watched.games:,} games"
    lead = Text(f"Of {watched.action.size:,} decisions in {count}, {(watched.choices > 1).mean():.0%} had a choice.")
    found: list[Section | None] = [
        Section("How it plays", [lead, *blocks]),
        calibration.section(watched, unit, scale),
    ]
    if own is not None:
        say(f"solving the last {wanted.tricks} tricks")
        found.append(own.section(watched, wanted.tricks, wanted.seed))
    return [section for section in found if section is not None]
