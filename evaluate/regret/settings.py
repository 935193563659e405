"""The settings of `busso regret`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from busso.cards.base.bounds import bounded
from busso.cards.player_specs import CHAMPION
from busso.command.settings.checks import MAX_DEALS, MAX_SEED, MAX_THREADS, check_numbers, require
from busso.evaluate.tournament.settings import TournamentSettings


@dataclass
class RegretSettings:
    """The settings of `busso regret`; conf/regret.yaml explains them."""

    game: dict[str, Any]
    players: list[str] = field(default_factory=list)
    base: str = CHAMPION
    positions: int = bounded(20_000, 2, MAX_DEALS)
    seed: int = bounded(1, 0, MAX_SEED)
    folder: str | None = None
    device: str = "auto"
    processes: int = bounded(1, 1, MAX_THREADS)

    def __post_init__(self) -> None:
        check_numbers("", self)
        require(bool(self.players), "players", "at least one", self.players)

    @property
    def tournament(self) -> TournamentSettings:
        """How players are loaded: as for a tournament."""
        return TournamentSettings(self.game, [self.base, *self.players], seed=self.seed, device=self.device)
