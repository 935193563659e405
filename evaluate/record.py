"""`busso record players=[champion,greedy] deals=10 to=games.jsonl`: play games and write them to a file.

The records name the player of each seat. `busso review`, `busso replay` and `busso play watch=FILE` read them.
Each game is written at once, so Ctrl-C keeps the games played.

example:
  busso record 'players=[champion,greedy]' deals=10 to=games.jsonl
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from busso.cards.base.bounds import bounded
from busso.command.app import settings_command
from busso.command.settings.checks import MAX_DEALS, MAX_SEED, MAX_TARGET, SettingsError, check_numbers
from busso.command.settings.game import load_configured_game
from busso.command.terminal.progress import Progress
from busso.evaluate.tournament.settings import Pair, TournamentSettings, check_game, pairs_of
from busso.train.dqn.players.resolve import resolve_all

if TYPE_CHECKING:
    from busso.evaluate.tournament.batches import Batch, TournamentWorker

_AT_A_TIME = 16  # deals; what a stop may lose


@dataclass
class RecordSettings:
    """The settings of `busso record`; conf/record.yaml explains them."""

    game: dict[str, Any]
    players: list[str] = field(default_factory=list)
    deals: int = bounded(10, 1, MAX_DEALS)
    to: str = "games.jsonl"
    overwrite: bool = False
    match: int | None = bounded(None, 1, MAX_TARGET)
    seating: str = "alternate"
    seed: int = bounded(7, 0, MAX_SEED)
    device: str = "auto"

    def __post_init__(self) -> None:
        check_numbers("", self)
        if not self.to:
            raise SettingsError("to", "the file to write, as in to=games.jsonl")
        _ = self.tournament  # what is wrong with it is said here

    @property
    def tournament(self) -> TournamentSettings:
        """The tournament whose games these are. Raises SettingsError."""
        return TournamentSettings(
            game=self.game,
            players=self.players,
            match=self.match,
            seating=self.seating,
            seed=self.seed,
            device=self.device,
        )


@settings_command(RecordSettings, "record")
def main(settings: RecordSettings) -> None:
    """Run the command."""
    path, tournament = Path(settings.to), settings.tournament
    if path.exists() and not settings.overwrite:
        raise SettingsError("to", f"{path} is there", "name another file, or say overwrite=true")
    from busso.evaluate.tournament.batches import TournamentWorker  # with Numba, for which --help does not wait

    game = load_configured_game(settings.game)
    check_game(tournament, game)
    players = resolve_all(game, settings.players)
    units = list(_units(settings, pairs_of(tournament, players)))
    worker = TournamentWorker(tournament, players)
    for player in players:
        worker.load(player)  # what cannot play is said before a file is made
    written = write(path, worker, units)
    print(f"{written} records written to {path}", file=sys.stderr)


def _units(settings: RecordSettings, pairs: Sequence[Pair]) -> Iterator[Batch]:
    from busso.evaluate.tournament.batches import Batch

    for pair in pairs:
        for first in range(0, settings.deals, _AT_A_TIME):
            deals = min(_AT_A_TIME, settings.deals - first)
            yield Batch(pair, first, deals, records=deals)


def write(path: Path, worker: TournamentWorker, units: Sequence[Batch]) -> int:
    """Play the units and write their records, as they come; returns how many. Raises OSError."""
    written = 0
    with path.open("w") as file, Progress("playing", sum(unit.deals for unit in units), "deals") as progress:
        try:
            for unit in units:
                lines = [line for row in worker.play(unit).records for line in row]
                file.writelines(f"{line}\n" for line in lines)
                file.flush()
                written += len(lines)
                progress.advance(unit.deals)
        except KeyboardInterrupt:
            print(f"stopped: {written} records are in {path}", file=sys.stderr)
            raise
    return written


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
