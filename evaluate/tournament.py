"""`python -m evaluate.tournament players=[...] deals=4096 seed=7`: every pair of players on duplicate deals.

With `seating=one_against_many` each player also sits alone among seats that are all the other's, so that a pair is
played, and has a row, both ways round.
"""

from __future__ import annotations

import csv
import json
import logging
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from itertools import combinations, permutations
from pathlib import Path
from typing import Any

import numpy as np
import torch
from rich.console import Console
from rich.progress import track
from rich.table import Table

from cards.duplicate import (
    ALTERNATE,
    ONE_AGAINST_MANY,
    SEATINGS,
    Duel,
    decimals,
    duel,
    meaning_of_won,
    plays_of,
    seatings,
    share_text,
)
from cards.game import Game
from cards.play import Actions, Decisions, Player, play
from cards.splitmix import stream
from command.checks import MAX_DEALS, MAX_SEED, MAX_THREADS, SettingsError, check_one_of, check_range
from command.compose import as_yaml, compose
from command.console import result_console
from command.game import load_configured_game
from command.line import parse, run_command
from evaluate.players import load_player
from train.run.device import choose_device


@dataclass
class TournamentSettings:
    """The settings of `python -m evaluate.tournament`; conf/tournament.yaml explains them."""

    game: dict[str, Any]
    players: list[str] = field(default_factory=list)
    seating: str = ALTERNATE
    deals: int = 4096
    seed: int = 7
    folder: str | None = None
    records: int = 0
    device: str = "auto"
    threads: int = 1

    def __post_init__(self) -> None:
        if len(self.players) < 2:
            raise SettingsError(f"players: at least two, not {self.players!r}")
        if len({player.rstrip("/") for player in self.players}) < len(self.players):
            raise SettingsError(f"players: each once, not {self.players!r}")
        check_one_of("seating", self.seating, *SEATINGS)
        check_range("deals", self.deals, 2, MAX_DEALS)
        check_range("seed", self.seed, 0, MAX_SEED)
        check_range("records", self.records, 0, MAX_DEALS)
        check_range("threads", self.threads, 1, MAX_THREADS)


@dataclass(frozen=True)
class Pairing:
    """The result of one pair: shares of games won and mean results, with half-widths of 95% intervals over deals.

    `even` is what equal players would win. The interval of games won, from `first_won_low` to `first_won_high`, is not
    symmetric near 0 and 1: `first_won_interval` is how far its farther end is.
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


def main(arguments: Sequence[str]) -> int:
    """Run the command line; returns the exit code."""
    logging.basicConfig(format="%(levelname)s: %(message)s")
    return run_command(_main, arguments)


def _main(arguments: Sequence[str]) -> int:
    options = parse("python -m evaluate.tournament", "tournament", arguments)
    settings = compose(TournamentSettings, "tournament", options.overrides)
    if options.print_config:
        print(as_yaml(settings), end="")
    else:
        run(settings)
    return 0


def run(settings: TournamentSettings) -> list[Pairing]:
    """Play all pairs, write the folder after each, so that nothing is lost if it is stopped, and print the table."""
    torch.set_num_threads(settings.threads)
    game = load_configured_game(settings.game)
    pairs = _pairs(settings, game)
    device = choose_device(settings.device)
    players = {spec: load_player(game, spec, device) for spec in settings.players}
    folder = _make_folder(settings, game)
    seeds = stream(settings.seed, "tournament", 0, settings.deals)
    results: list[Pairing] = []
    for first, second in track(pairs, "pairs", console=Console(stderr=True), transient=True):
        results.append(_pairing(first, second, duel(game, players[first], players[second], seeds, settings.seating)))
        _write(folder, settings, game, results)
        if settings.records:
            recorded = records(game, players[first], players[second], seeds[: settings.records], settings.seating)
            _write_records(folder, recorded)
    result_console().print(_table(game, settings, results))
    Console(stderr=True).print(f"written to {folder}", highlight=False)
    return results


def _pairs(settings: TournamentSettings, game: Game) -> list[tuple[str, str]]:
    """Each pair once; with one_against_many twice, since each of the two is once the one. Raises SettingsError."""
    try:
        seatings(game, settings.seating)
    except ValueError as error:
        raise SettingsError(f"seating: {error}") from None
    both_ways = settings.seating == ONE_AGAINST_MANY
    return list((permutations if both_ways else combinations)(settings.players, 2))


def _write_records(folder: Path, games: Iterator[dict[str, Any]]) -> None:
    with (folder / "games.jsonl").open("a") as file:
        for record in games:
            file.write(json.dumps(record, separators=(",", ":")) + "\n")


def records(
    game: Game, first: Player, second: Player, seeds: np.ndarray[Any, Any], seating: str = ALTERNATE
) -> Iterator[dict[str, Any]]:
    """The games of `duel` on these deals as records, all of the first row of `seatings`, then all of the next."""
    plays = plays_of(game, seeds, seating)
    played: list[list[int]] = [[] for _ in range(plays.seeds.size)]

    def watch(decisions: Decisions, actions: Actions, totals: np.ndarray[Any, Any]) -> None:
        for index, action in zip(decisions.games.tolist(), actions.tolist(), strict=True):
            played[index].append(action)

    play(game, plays.seeds, [first, second], plays.sides, watch=watch)
    for start, actions in zip(game.deal(plays.seeds), played, strict=True):
        yield game.record(start, actions)


def _pairing(first: str, second: str, result: Duel) -> Pairing:
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


def _make_folder(settings: TournamentSettings, game: Game) -> Path:
    now = datetime.now().strftime("%Y%m%d-%H%M%S")
    folder = Path(settings.folder) if settings.folder else Path("tournaments") / game.name / now
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "games.jsonl").unlink(missing_ok=True)
    except OSError as error:
        raise SettingsError(f"folder: cannot write to {folder} ({error.strerror}); choose another") from None
    return folder


def _write(folder: Path, settings: TournamentSettings, game: Game, results: Sequence[Pairing]) -> None:
    rows = [asdict(result) for result in results]
    with (folder / "results.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    won = meaning_of_won(game, settings.seating)
    document = {"settings": asdict(settings), "unit": game.unit, "won": won, "pairs": rows}
    (folder / "results.json").write_text(json.dumps(document, indent=2) + "\n")


def _table(game: Game, settings: TournamentSettings, results: Sequence[Pairing]) -> Table:
    alone = settings.seating == ONE_AGAINST_MANY
    title = f"{game.name}, {results[0].deals:,} duplicate deals a pair, 95% intervals over deals"
    table = Table(title=title, caption=meaning_of_won(game, settings.seating))
    one, many = ("one", "against, in all other seats") if alone else ("first", "second")
    for column in (one, many):
        table.add_column(column, overflow="fold")
    won = f"games won by {one}" + (f" (even: {results[0].even:.1%})" if alone else "")
    for column in (won, f"{game.unit} a game and seat" if game.seats > 2 else f"{game.unit} a game", "margin"):
        table.add_column(column, justify="right")
    places = decimals(min(r.margin_interval for r in results))
    for r in results:
        table.add_row(
            r.first,
            r.second,
            share_text(r.first_won, r.first_won_low, r.first_won_high),
            f"{r.first_result:.{places}f} : {r.second_result:.{places}f}",
            f"{r.margin:+.{places}f} ± {r.margin_interval:.{places}f}",
        )
    return table


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
