"""Checks of player names in a run's settings; files are looked up later, before the run starts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from busso.cards.base.errors import InputError
from busso.cards.game import Game
from busso.cards.player_kinds import kind_and_options
from busso.cards.player_specs import CHAMPION, PlayerSpec
from busso.command.settings.checks import SettingsError, require

if TYPE_CHECKING:
    from busso.train.settings.learning import PhaseSettings


MIX = "opponents.phases.mix"


def check_player(game: Game, key: str, text: str) -> None:
    """Raise SettingsError naming `key` unless this is a player of the game with valid options or a path.

    A path is not a name: `./x` is the folder x. Whether it exists is checked when a run starts, not when an old run's
    settings are read.
    """
    try:
        spec = PlayerSpec.parse(text)
        if spec.who in game.kinds and game.kinds[spec.who].of_network:
            alone = spec.of or CHAMPION
            raise InputError(spec, "a search with a network cannot play in training", f"use {alone}")
        if spec.path is None:
            kind_and_options(game, spec, f", {CHAMPION}, or a run folder or checkpoint file")
    except InputError as error:
        raise SettingsError(key, error) from None


def check_phases(phases: Sequence[PhaseSettings], episodes: int | None) -> None:
    """Raise SettingsError unless the phases cover a whole run of `episodes`."""
    require(bool(phases), "opponents.phases", "at least one phase", phases)
    ends = [math.inf if phase.until is None else phase.until for phase in phases]
    rising = all(a < b for a, b in pairwise(ends)) and ends[-1] == math.inf
    require(rising, "opponents.phases", "phases in order of `until`, the last with until: null", ends)
    last = max((phase.until for phase in phases if phase.until is not None), default=0)
    fits = last == 0 or (episodes is not None and last < episodes)
    require(fits, "opponents.phases", f"phases within the budget (use episodes=N above {last})", episodes)
    for phase in phases:
        fits = math.isclose(sum(phase.mix.values()), 1, abs_tol=1e-6)
        require(fits, MIX, "probabilities that add up to 1", dict(phase.mix))
