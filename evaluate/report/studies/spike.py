"""The published study of Corellian Spike: its tables and figures from our runs of batch Q-learning."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Patch
from numpy.typing import NDArray

from busso.cards.game import load_game
from busso.evaluate.report.content import Figure, Report, Section, Text, TextTable, table_of, write_csv
from busso.evaluate.report.drawing import COLOURS, Line, Panel, draw_panels, new_figure, style, to_svg
from busso.evaluate.report.studies._spike_bench import Bench, Result
from busso.evaluate.report.studies._spike_published import (
    AGAINST_OTHERS,
    INTERMEDIATE,
    NO_FOLD,
    TEXTS,
    TWO_AND_FOUR,
    VARIANT_PAIRS,
    VARIANTS,
    Pair,
    Variant,
)
from busso.train.run.metrics.curves import read

# The decisions and which actions belong to each.
DECISIONS = (("betting", (0, 1, 2)), ("buying", (3, 4)), ("exchange", (5, 6, 7, 8)))
_COLOURS = (*COLOURS, "#c9ced3")


def report(runs: Path, folder: Path, games: int, seed: int) -> Report:
    """The report; its tables are written to the folder as CSV too. Raises SettingsError when a run is missing."""
    bench = Bench(runs, games, seed)
    sections = [
        Section(title, [_table(folder, name, [table_row(bench, pair) for pair in pairs])])
        for name, title, pairs in (
            ("against_others", "Two-player policies", AGAINST_OTHERS),
            ("two_and_four", "The two-player against the four-player policy", TWO_AND_FOUR),
        )
    ]
    plays = _table(folder, "play", [play_row(bench, pair) for pair in TWO_AND_FOUR])
    variants = _table(folder, "variants", [variant_row(bench, variant) for variant in VARIANTS])
    sections += [
        Section("How the two- and the four-player policy play", [Text(TEXTS["play"]), plays]),
        Section("What else was tried", [Text(TEXTS["variants"]), variants]),
        Section("Where ours differ, and why", [Text(TEXTS["explanation"].format(intermediate=INTERMEDIATE))]),
    ]
    sections += [_actions_section(bench, folder, run) for run in bench.available()]
    sections.append(_unvisited_section(bench, folder))
    lead = TEXTS["lead"].format(games=games, intermediate=INTERMEDIATE, seeds=len(bench.copies()))
    return Report("Corellian Spike: the published study and our runs of it", lead, {}, sections)


def _table(folder: Path, name: str, rows: Sequence[dict[str, str]]) -> TextTable:
    write_csv(folder / f"{name}.csv", rows)
    words = [number for number, column in enumerate(rows[0]) if column in ("first", "second", "runs and play")]
    return table_of(rows, left=words)


def table_row(bench: Bench, pair: Pair) -> dict[str, str]:
    """A line of a table: the published figures, those of our runs, and of our runs whose exploration never folds."""
    said, ours, no_fold = pair.published, bench.results(pair, ""), bench.results(pair, NO_FOLD)
    return {
        "first": pair.first,
        "second": pair.second,
        "seats": str(pair.seats),
        "published credits": _both(said.first_credits, said.second_credits, "{:+.1f}"),
        "our credits": _credits(ours),
        "no fold credits": _credits(no_fold),
        "published hands": _both(said.first_hands, said.second_hands, "{:.0%}"),
        "our hands": _spread([result.first_hands for result in ours], "{:.1%}"),
        "no fold hands": _spread([result.first_hands for result in no_fold], "{:.1%}"),
        "published busts": "" if said.busts is None else f"{said.busts[0]} / {said.busts[1]}",
        "our busts": _busts(ours),
        "no fold busts": _busts(no_fold),
    }


def play_row(bench: Bench, pair: Pair) -> dict[str, str]:
    """A line of the table of how a pair plays: raises of a seat of each side in a hand, and the hands of a game."""
    row = {"first": pair.first, "second": pair.second, "seats": str(pair.seats)}
    for name, variant in (("our", ""), ("no fold", NO_FOLD)):
        results = bench.results(pair, variant)
        raises = zip(*(result.raises for result in results), strict=True)
        row[f"{name} raises"] = " / ".join(f"{np.mean(side):.1f}" for side in raises)
        row[f"{name} length"] = _spread([result.length for result in results], "{:.1f}")
    return row


def variant_row(bench: Bench, variant: Variant) -> dict[str, str]:
    """A line of the table of variants: what the first player of each of its pairs wins, credits and share of hands."""
    row = {"runs and play": variant.title}
    for column, pair in VARIANT_PAIRS.items():
        results = bench.results(pair, variant.ending, variant.epsilon, variant.raise_cap)
        hands = _spread([result.first_hands for result in results], "{:.1%}")
        row[column] = f"{_credits(results)}, {hands}" if results else ""
    return row


def _credits(results: Sequence[Result]) -> str:
    if len(results) == 1:
        only = results[0].first_credits
        return f"{only.mean:+.1f} ± {only.half_width:.1f}"
    return _spread([result.first_credits.mean for result in results], "{:+.1f}")


def _spread(values: Sequence[float], form: str) -> str:
    """The mean over the runs of each seed and, of several, the lowest and the highest."""
    if not values:
        return ""
    mean, lowest, highest = (form.format(value) for value in (np.mean(values), min(values), max(values)))
    return mean if len(values) == 1 else f"{mean} ({lowest} to {highest})"


def _busts(results: Sequence[Result]) -> str:
    return " / ".join(f"{np.mean(side):.0f}" for side in zip(*(result.busts for result in results), strict=True))


def _both(first: float | None, second: float | None, form: str) -> str:
    return " / ".join(form.format(value) for value in (first, second) if value is not None)


def _actions_section(bench: Bench, folder: Path, run: str) -> Section:
    game = load_game("spike")
    iterations = bench.saved(run)
    counts = np.stack([bench.decisions(run, iteration) for iteration in iterations])
    names = [game.action_text(action) for action in range(game.actions)]
    rows = [
        {"iteration": str(iteration), "round": str(number), "action": names[action], "decisions": str(count)}
        for iteration, rounds in zip(iterations, counts.tolist(), strict=True)
        for number, actions in enumerate(rounds)
        for action, count in enumerate(actions)
    ]
    name = f"actions_{run}"
    write_csv(folder / f"{name}.csv", rows)
    svg = draw_actions(name, iterations, counts, names)
    says = "Share of each action in self-play after each saved iteration, by round and decision."
    return Section(f"Actions of {run}", [Figure(name, svg, says, says)])


def _unvisited_section(bench: Bench, folder: Path) -> Section:
    curves = {run: read(bench.runs / run)["table/unvisited"][1] for run in bench.available()}
    length = max(len(curve) for curve in curves.values())
    rows = [
        {"iteration": str(k + 1)} | {run: f"{curve[k]:.0f}" if k < len(curve) else "" for run, curve in curves.items()}
        for k in range(length)
    ]
    write_csv(folder / "unvisited.csv", rows)
    every = [row for row in rows if int(row["iteration"]) % 5 == 0 or row["iteration"] == "1"]
    lines = {run: Line(np.arange(1.0, len(curve) + 1), np.asarray(curve)) for run, curve in curves.items()}
    svg = draw_panels("unvisited", [Panel("", lines, "states never visited")], "iteration", columns=1)
    return Section("States never visited", [Figure("unvisited", svg, "States by iteration."), table_of(every, left=())])


def draw_actions(name: str, iterations: Sequence[int], counts: NDArray[np.int64], actions: Sequence[str]) -> str:
    """Stacked bars of the share of each action, by round and decision and for each of `iterations`, as SVG.

    `counts` are decisions taken, `[iterations, rounds, actions]`.
    """
    with style():
        figure, axes = new_figure(6.6, 4, 3, sharex=True, sharey=True)
        for number in range(4):
            for column, (decision, its) in enumerate(DECISIONS):
                axis = axes[number][column]
                if number == 0 and column > 0:  # nothing is bought there
                    axis.set_axis_off()
                    continue
                axis.set_title(f"round {number}, {decision}")
                _stack(axis, iterations, counts[:, number, list(its)], [_COLOURS[action] for action in its])
                if column == 0:
                    axis.set_ylabel("share")
                if number == 3:
                    axis.set_xlabel("iteration")
        figure.legend([Patch(color=colour) for colour in _COLOURS], actions, ncols=3, loc="outside lower left")
        return to_svg(figure, name)


def _stack(axis: Axes, iterations: Sequence[int], counts: NDArray[np.int64], colours: Sequence[str]) -> None:
    """One bar for each iteration, empty where nothing was decided."""
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    bottom = np.zeros(len(iterations))
    for share, colour in zip(shares.T, colours, strict=True):
        axis.bar(list(iterations), share, width=4, bottom=bottom, color=colour)
        bottom += share
    axis.set_ylim(0, 1)
