"""Page of a tournament, report.html, with its pictures ratings.png and pairs.png."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure as Drawing

from busso.base.files import write_atomic
from busso.base.terminal import broken, code
from busso.cards.duplicate import meaning_of_won
from busso.evaluate.report import page
from busso.evaluate.report.drawing import Interval, interval_figure, new_figure, png, style, to_svg
from busso.evaluate.report.page import Figure, Report, Section, Text, TextTable
from busso.evaluate.tournament import report
from busso.evaluate.tournament.ratings import Ratings

_MOST_TEXTS = 12  # players of a heat map with numbers in its cells


def write(folder: Path, results: report.Results) -> None:
    """Write the page and its pictures."""
    ratings, settings = results.ratings, results.settings
    assert ratings is not None
    rows = [Interval(row.player, row.elo, row.low, row.high, report.elo_text(row)) for row in ratings.rows]
    with style():
        figures = {"ratings": interval_figure(rows, f"Elo, {report.zero(settings)}")}
        if len(rows) > 2:
            figures["pairs"] = _heat_map(results, ratings)
        drawn = {name: to_svg(figure, name) for name, figure in figures.items()}
        for name, figure in figures.items():
            write_atomic(folder / f"{name}.png", png(figure))
    caption = f"Elo: {report.zero(settings)}; 400 points are odds of 10 to 1. Bars are 95% intervals over deals."
    ranked = Figure(drawn["ratings"], "The ratings of the table below with their intervals.", caption)
    sections = [
        Section("Ratings", [ranked, _ratings_table(results, ratings)]),
        Section("Pairs", list(_pairs(results, ratings, drawn.get("pairs")))),
    ]
    facts = {"players": f"{len(rows)}", "pairs": f"{len(results.pairings)}", "seed": f"{settings.seed}"}
    page.write(Report(f"{results.game.name}: tournament", f"{report.title(results)}.", facts, sections), folder)


def _ratings_table(results: report.Results, ratings: Ratings) -> TextTable:
    rows = []
    for number, row in enumerate(ratings.rows, start=1):
        spent = results.spent[row.player]
        times = (report.milliseconds(seconds, spent) for seconds in (spent.seconds, spent.cpu_seconds))
        counts = f"{spent.decisions:,}", f"{spent.forced:,}"
        rows.append((f"{number}", code(row.player), report.elo_text(row), f"{row.won:.1%}", *times, *counts))
    columns = ("", "player", "Elo", "won", "ms a decision", "ms of CPU", "decisions", "forced")
    return TextTable(columns, rows, "Times are per decision with a choice.", left=(0, 1))


def _pairs(results: report.Results, ratings: Ratings, drawn: str | None) -> Iterator[Figure | Text | TextTable]:
    (what, whats), game, settings = report.what_is_played(results.settings), results.game, results.settings
    rows = [(code(row.first), code(row.second), f"{row.deals:,}", *report.texts(row)) for row in results.pairings]
    if drawn is not None:
        says = f"{report.matrix_title(settings)}; the table below has the same numbers."
        yield Figure(drawn, says, f"{report.misfit(ratings)}.")
    columns = ("first", "second", "deals", f"{whats} won by first", f"{game.unit} a {what}", "margin")
    even = results.pairings[0].even
    alone = "" if even == 0.5 else f" The first sits alone against the second; equal players win {even:.1%}."
    yield TextTable(columns, rows, f"{meaning_of_won(game, settings.seating).capitalize()}.{alone}", left=(0, 1))


def _heat_map(results: report.Results, ratings: Ratings) -> Drawing:
    shares, names, even = report.won(results), [row.player for row in ratings.rows], results.pairings[0].even
    labels = [broken(f"{number} {name}", 30) for number, name in enumerate(names, start=1)]
    figure, axes = new_figure(0.7 + len(names) * max(0.42, 0.14 * max(label.count("\n") + 1 for label in labels)))
    axis, cells = axes[0, 0], np.zeros((len(names), len(names), 4))  # transparent
    for pair, (share, half) in shares.items():
        row, column = (names.index(name) for name in pair)
        cells[row, column] = (*to_rgb(report.heat(share, even)), 1)
        if len(names) <= _MOST_TEXTS:
            text = f"{100 * share:.1f}\n±{100 * half:.1f}"
            axis.text(column, row, text, ha="center", va="center", color="black", size=7.5)
    axis.imshow(cells, aspect="auto")
    axis.set_xticks(range(len(names)), [f"{number}" for number in range(1, len(names) + 1)])
    axis.set_yticks(range(len(names)), labels)
    axis.set_title(report.matrix_title(results.settings))
    axis.xaxis.tick_top()
    axis.spines[:].set_visible(False)
    axis.grid(visible=False)
    return figure
