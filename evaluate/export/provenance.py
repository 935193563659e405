"""Origin of a checkpoint's network: game, command, decisions, hours."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import yaml

from busso.cards.base.own_files import typed_game
from busso.cards.game import Game
from busso.train.run.checkpoint.checkpoint import CheckpointError
from busso.train.run.folder import CHANGEABLE, CHANGEABLE_GROUPS
from busso.train.run.read import Run
from busso.train.settings.dqn import TrainSettings
from busso.train.settings.resolve import defaults_of
from busso.train.settings.run import BUDGET_KEYS
from busso.train.settings.saved import changes

_END, _QUOTE = "...\n", '"'  # of YAML after a scalar, of JSON around one


def game_of(path: Path, state: Mapping[str, Any]) -> Game:
    """The game of a checkpoint, under the options that it was trained with. Raises CheckpointError for one of none."""
    from busso.command.settings.game import load_configured_game

    try:
        return load_configured_game(dict(state["settings"]["game"]))
    except (KeyError, TypeError, ValueError) as error:
        raise CheckpointError(path, f"holds no network that can play ({error})") from None


def decisions_of(state: Mapping[str, Any]) -> int:
    """Return the decisions before a checkpoint: the best network has the number itself, others have counters."""
    return int(state["env_steps"] if "env_steps" in state else state.get("counters", {}).get("env_steps", 0))


def seconds_of(path: Path, settings: TrainSettings) -> float:
    """Seconds of training in the run of a checkpoint file; 0 for a file without its run."""
    return float(Run(path.parent.parent, settings).counters.get("seconds", 0.0))


def commit_of(path: Path, settings: TrainSettings) -> str | None:
    """The commit of the program at the last start of a checkpoint's run; None where it is not known."""
    starts = Run(path.parent.parent, settings).launches
    found = starts[-1].get("commit") if starts else None
    return found if isinstance(found, str) else None


def hours_of(seconds: float) -> float | None:
    """Return hours as a card has them; None if unknown."""
    return round(seconds / 3600, 2) or None


def command_of(settings: TrainSettings) -> str | None:
    """A command that trains with these settings: what differs from the game's defaults; None for a game elsewhere."""
    plain = defaults_of(settings)
    if plain is None:
        return None
    if isinstance(plain, TrainSettings):  # a player knows the number of its bits
        plain.network.inputs = plain.network.inputs or settings.load_game().bits
    left_out = {*CHANGEABLE, "name"} - {*BUDGET_KEYS}
    given = [
        _override(key, new)
        for key, (_, new) in changes(asdict(plain), asdict(settings)).items()
        if key not in left_out and not key.startswith(CHANGEABLE_GROUPS)
    ]
    return " ".join(["busso train", f"game={typed_game(settings.game_name)}", *given])


def _override(key: str, value: object) -> str:
    as_yaml = partial(yaml.safe_dump, default_flow_style=True, width=1000, allow_unicode=True)
    text = json.dumps(value, ensure_ascii=False) if isinstance(value, str) else str(as_yaml(value))
    return shlex.quote(f"{key}={text.removesuffix(_END).strip().strip(_QUOTE)}")
