"""Results of a tournament: on the screen, and in results.csv, results.json, ratings.csv, games.jsonl."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from math import nan
from pathlib import Path

from rich.console import Console
from rich.measure import Measurement
from rich.table import Column, Table
from rich.text import Text

from busso.base.files import write_atomic, write_csv
from busso.base.terminal import broken, code
from busso.cards.duplicate import ONE_AGAINST_MANY, Duel, decimals, meaning_of_won, share_text
from busso.cards.game import Game
from busso.evaluate.tournament.batches import Timing
from busso.evaluate.tournament.ratings import Rating, Ratings, rate
from busso.evaluate.tournament.schedule import PairState
from busso.evaluate.tournament.settings import Pair, TournamentSettings

# Cells of a name and of a plot on the screen.
_LEAST_NAME, _LEAST_PLOT, _MOST_PLOT, _ANY = 16, 11, 41, 10_000
# Colours of a heat map, on all of which black is readable: no game won, as many as by equal players, all.
_LESS, _EVEN, _MORE = (217, 131, 36), (244, 246, 248), (88, 148, 214)


@dataclass(frozen=True)
class Pairing:
    """Result of one pair: shares of games won and mean results, with half-widths of 95% intervals over deals.

    `even` is the share that equal players win. The interval of games won, from `first_won_low` to `first_won_high`, is
    not symmetric near 0 and 1; `first_won_interval` is the distance to its farther end.
    """

    first: str
    second: str
    deals: int
    even: float
    first_won: float
    first_won_interval: float
    first_won_low: float
    first_won_high: float
    first_result: float
    second_result: float
    margin: float
    margin_interval: float


@dataclass(frozen=True)
class Results:
    """Results of a tournament so far; `ratings` are None until every pair has been played."""

    game: Game
    settings: TournamentSettings
    pairings: list[Pairing]
    ratings: Ratings | None
    spent: Mapping[str, Timing]


def results_of(game: Game, settings: TournamentSettings, states: Sequence[PairState]) -> Results:
    """Return the results of the settled pairs, and the times of all."""
    duels = {state.pair: state.duel for state in states if state.settled}
    spent: dict[str, Timing] = {}
    for state in states:
        for player, more in zip(state.pair, state.spent, strict=True):
            spent[player] = spent.get(player, Timing()) + more
    ratings = rate(duels, settings.anchor) if len(duels) == len(states) else None
    return Results(game, settings, [pairing(*pair, duel) for pair, duel in duels.items()], ratings, spent)


def pairing(first: str, second: str, result: Duel) -> Pairing:
    """Return the result of one pair."""
    won, margin = result.win_rate, result.points
    return Pairing(
        first,
        second,
        result.wins.size,
        result.even,
        won.mean,
        won.half_width,
        won.low,
        won.high,
        float(result.own.mean()),
        float(result.other.mean()),
        margin.mean,
        margin.half_width,
    )


def write(folder: Path, results: Results) -> None:
    """Write results.csv and results.json, and ratings.csv if there are ratings, each atomically."""
    rows = [asdict(pairing) for pairing in results.pairings]
    write_csv(folder / "results.csv", rows)
    document = {
        "settings": asdict(results.settings),
        "unit": results.game.unit,
        "won": meaning_of_won(results.game, results.settings.seating),
        "pairs": rows,
        "times": {player: asdict(spent) for player, spent in results.spent.items()},
    }
    if results.ratings is not None:
        ratings = [asdict(row) for row in results.ratings.rows]
        write_csv(folder / "ratings.csv", ratings)
        misfit = {"pair": results.ratings.misfit_pair, "difference": results.ratings.misfit}
        document |= {"ratings": ratings, "misfit": misfit}
    write_atomic(folder / "results.json", json.dumps(document, indent=2) + "\n")


def write_records(folder: Path, states: Sequence[PairState]) -> None:
    """Write games.jsonl: pair by pair, all games of the first row of `seatings`, then all of the next."""
    lines: list[str] = []
    for state in states:
        parts = [part.records for part in state.parts if part.records]
        for rows in zip(*parts, strict=True):
            lines += [line for row in rows for line in row]
    write_atomic(folder / "games.jsonl", "".join(f"{line}\n" for line in lines))


def won(results: Results) -> dict[Pair, tuple[float, float]]:
    """Return the share of games that each player won against each other one, with the half-width of its interval."""
    found: dict[Pair, tuple[float, float]] = {}
    for row in results.pairings:
        found[row.first, row.second] = row.first_won, row.first_won_interval
        if results.settings.seating != ONE_AGAINST_MANY:
            found[row.second, row.first] = 1 - row.first_won, row.first_won_interval
    return found


def show(results: Results, console: Console) -> None:
    """Print the ratings, and the pairs as a matrix or, of two players, as sentences."""
    assert results.ratings is not None
    console.print(_ratings_table(results, results.ratings, console.width))
    if len(results.ratings.rows) == 2:
        for pairing in results.pairings:
            console.print(_sentence(results, pairing), highlight=False)
        return
    given, yes_no = (results, results.ratings, console), (True, False)
    matrices = (_matrix(*given, with_interval, with_names) for with_interval in yes_no for with_names in yes_no)
    wide = console.options.update(width=_ANY)
    fitting = (each for each in matrices if Measurement.get(console, wide, each).maximum <= console.width)
    console.print(next(fitting, "report.html has the matrix of the pairs, which is wider than this screen"))


def what_is_played(settings: TournamentSettings) -> tuple[str, str]:
    """Return what a pair plays, one and several."""
    return ("game", "games") if settings.match is None else ("match", "matches")


def title(results: Results) -> str:
    """Return what has been played."""
    deals = {row.deals for row in results.pairings}
    played = f"{min(deals):,}" if len(deals) == 1 else f"{min(deals):,} to {max(deals):,}"
    to = "" if results.settings.match is None else f", matches to {results.settings.match}"
    return f"{results.game.name}{to}, {played} duplicate deals a pair, 95% intervals over deals"


def matrix_title(settings: TournamentSettings, intervals: str = "95% intervals") -> str:
    """Return what a matrix of the pairs shows."""
    return f"% of {what_is_played(settings)[1]} won by the row against the column, {intervals}"


def misfit(ratings: Ratings) -> str:
    """Return how well the ratings fit the results."""
    one, other = (code(name) for name in ratings.misfit_pair)
    return f"Elo fits the results to within {ratings.misfit:.1%}; the worst fit is {one} against {other}"


def zero(settings: TournamentSettings) -> str:
    """Return what the rating 0 means."""
    return f"0 is {settings.anchor}" if settings.anchor else "their mean is 0"


def _sentence(results: Results, row: Pairing) -> str:
    """Return the result of a pair in a sentence."""
    (what, whats), game, (share, both, margin) = what_is_played(results.settings), results.game, texts(row)
    alone = results.settings.seating == ONE_AGAINST_MANY
    against = f"alone against {row.second} in all other seats" if alone else f"against {row.second}"
    even = f", even: {row.even:.1%}" if alone else ""
    result = f"{game.unit} a {what}{' and seat' if game.seats > 2 else ''} {both}, margin {margin}"
    return f"{row.first} {against}: {share} of {whats} won{even}; {result}"


def texts(row: Pairing) -> tuple[str, str, str]:
    """Return the share won by the first, and in the game's unit the results of both and the difference."""
    places = decimals(row.margin_interval)
    both = f"{row.first_result:.{places}f} : {row.second_result:.{places}f}"
    share = share_text(row.first_won, row.first_won_low, row.first_won_high)
    return share, both, f"{row.margin:+.{places}f} ± {row.margin_interval:.{places}f}"


def elo_text(row: Rating) -> str:
    """Format a rating with the half-width of its interval."""
    return f"{row.elo:+.0f} ± {row.high - row.elo:.0f}"


def _ratings_table(results: Results, ratings: Ratings, width: int) -> Table:
    rows = ratings.rows
    low, high = min(row.low for row in rows), max(row.high for row in rows)
    elos = [elo_text(row) for row in rows]
    others = 19 + len(str(len(rows))) + max(map(len, elos)) + len("100.0%") + len("decision")  # 19: borders
    narrow = width < others + _LEAST_NAME + _LEAST_PLOT
    columns = slice(None, None, 2 if narrow else 1)  # a narrow screen has no room for plots and times
    others -= (6 + len("decision") + _LEAST_PLOT) * narrow
    least = 1 if narrow else _LEAST_NAME
    names = max(least, min(max(len(row.player) for row in rows), width - others - _LEAST_PLOT))
    cells = min(_MOST_PLOT, max(_LEAST_PLOT, width - others - names))
    means = meaning_of_won(results.game, results.settings.seating)
    caption = f"Elo: {zero(results.settings)}; 400 points are odds of 10 to 1; {means}"
    table = Table("", Column("player", overflow="fold"), title=title(results), caption=caption)
    ends = f"{low:+.0f}", f"{high:+.0f}"
    headings = "Elo", ends[0] + ends[1].rjust(cells - len(ends[0])), "won", "ms a\ndecision"
    for name in headings[columns]:
        table.add_column(name, justify="left" if name.startswith(ends) else "right", no_wrap=True)
    for number, (row, elo) in enumerate(zip(rows, elos, strict=True), start=1):
        drawn = _drawn(row.low, row.elo, row.high, low, high, cells)
        spent = results.spent[row.player]
        time = milliseconds(spent.seconds, spent)
        values = elo, drawn, f"{row.won:.1%}", time
        table.add_row(str(number), broken(row.player, names), *values[columns])
    return table


def _drawn(low: float, middle: float, high: float, least: float, most: float, cells: int) -> str:
    """Draw an interval, and a line at 0, in a row of cells that reach from `least` to `most`."""

    def place(value: float) -> int:
        return round((value - least) / max(most - least, 1e-9) * (cells - 1))

    drawn = [" "] * cells
    begin, end = place(low), place(high)
    drawn[begin : end + 1] = "├" + "─" * (end - begin - 1) + "┤" if end > begin else "│"
    if least < 0 < most:
        drawn[place(0)] = {" ": "┊", "─": "┼"}.get(drawn[place(0)], drawn[place(0)])
    drawn[place(middle)] = "●"
    return "".join(drawn)


def _matrix(results: Results, ratings: Ratings, console: Console, with_interval: bool, with_names: bool) -> Table:
    shares, rows, even = won(results), ratings.rows, results.pairings[0].even
    coloured = console.color_system in ("truecolor", "256")
    widest = f"95% intervals of at most ± {100 * max(half for _, half in shares.values()):.1f}"

    def cell(pair: Pair) -> Text:
        share, half = shares.get(pair, (nan, nan))
        text = f"{100 * share:.1f}" + (f" ±{100 * half:.1f}" if with_interval else "")
        return Text(text, f"#000000 on {heat(share, even)}" if coloured else "") if pair in shares else Text("")

    heading = matrix_title(results.settings, "95% intervals" if with_interval else widest)
    table = Table("", title=heading, caption=misfit(ratings).replace("`", ""))
    for name in [*([""] if with_names else []), *map(str, range(1, len(rows) + 1))]:
        table.add_column(name, justify="right" if name else "left", no_wrap=True)
    for number, row in enumerate(rows, start=1):
        cells = (cell((row.player, other.player)) for other in rows)
        table.add_row(str(number), *([row.player] if with_names else []), *cells)
    return table


def heat(share: float, even: float) -> str:
    """Return the colour of a share of games won: from orange, none, to blue, all."""
    far = (share - even) / (1 - even) if share > even else (even - share) / even
    ends = zip(_EVEN, _MORE if share > even else _LESS, strict=True)
    return "#" + "".join(f"{round(middle + far * (end - middle)):02x}" for middle, end in ends)


def milliseconds(seconds: float, spent: Timing) -> str:
    """Format seconds of all decisions as milliseconds of one."""
    ms = 1000 * seconds / max(1, spent.decisions)
    return f"{ms:.3f}" if ms >= 0.001 else "< 0.001"
