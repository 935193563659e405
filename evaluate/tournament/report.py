"""Results of a tournament: tables on the screen, results.csv, results.json, ratings.csv, games.jsonl."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.table import Table

from busso.base.files import write_atomic, write_csv
from busso.cards.duplicate import ONE_AGAINST_MANY, Duel, decimals, meaning_of_won, share_text
from busso.cards.game import Game
from busso.evaluate.tournament.batches import Timing
from busso.evaluate.tournament.ratings import Ratings, rate
from busso.evaluate.tournament.schedule import PairState
from busso.evaluate.tournament.settings import Pair, TournamentSettings


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


def tables(results: Results) -> list[Table]:
    """Return the tables of pairs, of players against each other if there are more than two, and of players."""
    found, ratings = [_pairs_table(results)], results.ratings
    if ratings is not None and len(ratings.rows) > 2:
        found.append(_matrix(results, ratings))
    return [*found, _players_table(results, ratings)] if ratings is not None else found


def _pairs_table(results: Results) -> Table:
    game, settings, rows = results.game, results.settings, results.pairings
    alone = settings.seating == ONE_AGAINST_MANY
    deals = {row.deals for row in rows}
    played = f"{min(deals):,}" if len(deals) == 1 else f"{min(deals):,} to {max(deals):,}"
    what, whats = _what_is_played(settings)
    to = "" if settings.match is None else f", matches to {settings.match}"
    title = f"{game.name}{to}, {played} duplicate deals a pair, 95% intervals over deals"
    table = Table(title=title, caption=meaning_of_won(game, settings.seating))
    one, many = ("one", "against, in all other seats") if alone else ("first", "second")
    for column in (one, many):
        table.add_column(column, overflow="fold")
    if len(deals) > 1:
        table.add_column("deals", justify="right")
    won = f"{whats} won by {one}" + (f" (even: {rows[0].even:.1%})" if alone else "")
    for column in (won, f"{game.unit} a {what}" + (" and seat" if game.seats > 2 else ""), "margin"):
        table.add_column(column, justify="right")
    places = decimals(min(r.margin_interval for r in rows))
    for r in rows:
        table.add_row(
            r.first,
            r.second,
            *([f"{r.deals:,}"] if len(deals) > 1 else []),
            share_text(r.first_won, r.first_won_low, r.first_won_high),
            f"{r.first_result:.{places}f} : {r.second_result:.{places}f}",
            f"{r.margin:+.{places}f} ± {r.margin_interval:.{places}f}",
        )
    return table


def _what_is_played(settings: TournamentSettings) -> tuple[str, str]:
    return ("game", "games") if settings.match is None else ("match", "matches")


def _matrix(results: Results, ratings: Ratings) -> Table:
    a, b = ratings.misfit_pair
    misfit = f"Elo fits the results to within {ratings.misfit:.1%}; the worst fit is {a} against {b}"
    whats = _what_is_played(results.settings)[1]
    table = Table(title=f"% of {whats} won by the row against the column, 95% intervals", caption=misfit)
    table.add_column("")
    table.add_column("", overflow="fold")
    names = [row.player for row in ratings.rows]
    for number in range(1, len(names) + 1):
        table.add_column(str(number), justify="right")
    shares: dict[Pair, str] = {}
    for r in results.pairings:
        shares[r.first, r.second] = f"{100 * r.first_won:.1f} ±{100 * r.first_won_interval:.1f}"
        if results.settings.seating != ONE_AGAINST_MANY:
            shares[r.second, r.first] = f"{100 * (1 - r.first_won):.1f} ±{100 * r.first_won_interval:.1f}"
    for number, name in enumerate(names, start=1):
        table.add_row(str(number), name, *(shares.get((name, other), "") for other in names))
    return table


def _players_table(results: Results, ratings: Ratings) -> Table:
    anchor = results.settings.anchor
    zero = f"0 is {anchor}" if anchor else "their mean is 0"
    caption = f"Elo: {zero}; 400 points are odds of 10 to 1. Times per decision with a choice: wall-clock and CPU time"
    table = Table(title="players", caption=caption)
    table.add_column("")
    table.add_column("player", overflow="fold")
    for column in ("Elo, 95% interval", "won", "ms a decision", "ms of CPU", "decisions", "forced"):
        table.add_column(column, justify="right")
    for number, row in enumerate(ratings.rows, start=1):
        elo = f"{row.elo:+.0f} ({row.low:+.0f} to {row.high:+.0f})"
        table.add_row(str(number), row.player, elo, f"{row.won:.1%}", *_times(results.spent[row.player]))
    return table


def _times(spent: Timing) -> tuple[str, ...]:
    count = max(1, spent.decisions)
    each = (1000 * spent.seconds / count, 1000 * spent.cpu_seconds / count)
    return (*(f"{ms:.3f}" if ms >= 0.001 else "< 0.001" for ms in each), f"{spent.decisions:,}", f"{spent.forced:,}")
