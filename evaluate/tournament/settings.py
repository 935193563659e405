"""Settings of a tournament, and its pairs of players."""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import combinations, permutations
from typing import Annotated, Any

from busso.base.bounds import Bounds
from busso.cards.duplicate import ONE_AGAINST_MANY, SEATINGS, seatings
from busso.cards.game import Game
from busso.command.settings.checks import (
    MAX_DEALS,
    MAX_SEED,
    MAX_TARGET,
    MAX_THREADS,
    SettingsError,
    check_numbers,
    check_one_of,
    errors_about,
    require,
)
from busso.command.settings.game import GameSettings
from busso.command.settings.quoting import spelled
from busso.train.players.resolve import ResolvedPlayer

Pair = tuple[str, str]

DEALS, MOST_DEALS = 4096, 1_000_000  # defaults for a pair: without `until`, and the limit with it
BATCH, SEARCH_BATCH = 512, 64  # deals; with search players each takes seconds
MAX_BATCH = 65_536
AUTO = "auto"  # value of `processes`


@dataclass
class TournamentSettings(GameSettings):
    """Settings of `busso tournament`; documented in conf/tournament.yaml."""

    game: dict[str, Any]
    players: list[str]
    match: Annotated[int | None, Bounds(1, MAX_TARGET, words=(None,))]
    seating: str
    deals: Annotated[int | None, Bounds(2, MAX_DEALS, words=(None,))]
    until: str | None
    batch_deals: Annotated[int | None, Bounds(2, MAX_BATCH, words=(None,))]
    seed: Annotated[int, Bounds(0, MAX_SEED)]
    anchor: str | None
    folder: str | None
    records: Annotated[int, Bounds(0, MAX_DEALS)]
    device: str
    threads: Annotated[int, Bounds(1, MAX_THREADS)]
    processes: str

    def __post_init__(self) -> None:
        check_numbers("", self)
        require(len(self.players) >= 2, "players", "at least two players", self.players)
        self.players = [spelled("players", player) for player in self.players]
        if self.anchor is not None:
            self.anchor = spelled("anchor", self.anchor)
            check_one_of("anchor", self.anchor, *self.players)
        check_one_of("seating", self.seating, *SEATINGS)
        _ = self.half_width
        if self.processes != AUTO:
            number = int(self.processes) if self.processes.isdecimal() else 0
            require(1 <= number <= MAX_THREADS, "processes", f"auto, or 1 to {MAX_THREADS}", self.processes)

    @property
    def half_width(self) -> float | None:
        """Half-width in `until` as a share: `0.5%` is 0.005; None without it. Raises SettingsError."""
        if self.until is None:
            return None
        text = self.until.strip()
        try:
            share = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
        except ValueError:
            share = 0.0
        require(0 < share < 0.5, "until", "more than 0% and less than 50%, as in 0.5%", self.until)
        return share

    @property
    def most_deals(self) -> int:
        """Number of deals of a pair; with `until` the maximum number."""
        return self.deals or (DEALS if self.until is None else MOST_DEALS)

    def batch_for(self, players: Iterable[ResolvedPlayer]) -> int:
        """Return the deals of a batch: a stop loses at most the running batches, and `until` is checked after each."""
        return self.batch_deals or (SEARCH_BATCH if any(player.kind.searches for player in players) else BATCH)


def check_game(settings: TournamentSettings, game: Game) -> None:
    """Raise SettingsError for a seating or a match that the game does not have."""
    if settings.match is not None:
        from busso.cards.match import match_rules  # deferred: imports Numba

        try:
            match_rules(game, settings.match)
        except ValueError as error:
            raise SettingsError("match", error, "null plays single games") from None
    with errors_about("seating"):
        seatings(game, settings.seating)


def pairs_of(settings: TournamentSettings, players: Iterable[str]) -> list[Pair]:
    """Return each pair once; with one_against_many in both orders, as each player is the one in turn."""
    both_ways = settings.seating == ONE_AGAINST_MANY
    return list((permutations if both_ways else combinations)(players, 2))
