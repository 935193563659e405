"""The network to export from a run, a checkpoint or a champion, and their origin."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import torch

from busso.cards.game import Game
from busso.cards.player_specs import CHAMPION
from busso.command.settings.checks import SettingsError
from busso.evaluate.export.provenance import command_of, commit_of, decisions_of, game_of, hours_of, seconds_of
from busso.train.dqn.network.build import build_network
from busso.train.dqn.network.q_network import QNetwork
from busso.train.dqn.players import champion_file as champion
from busso.train.dqn.players.champion_file import Champion
from busso.train.dqn.players.load import holds_table, load_champion, load_network
from busso.train.dqn.players.resolve import resolve_network
from busso.train.run.checkpoint import checkpoint
from busso.train.run.results import read_results

_CPU = torch.device("cpu")
EXPORT = "export"  # the folder beside a run
ONNX = "onnx"
PACKED, BITS = "packed", "bits"  # forms of observations


@dataclass(frozen=True)
class ExportSource:
    """A network that learns no more. `results` are those of results.json, empty where nothing has measured it.

    `beside` is the folder in which an export lies where none is named.
    """

    title: str
    found: Champion
    results: Mapping[str, Any]
    beside: Path

    @cached_property
    def game(self) -> Game:
        """Under the options that it was trained with."""
        return self.found.settings.load_game()

    @cached_property
    def network(self) -> QNetwork:
        """In float32, whatever this machine multiplies in when it plays."""
        network = build_network(self.game, self.found.settings).eval()
        network.load_state_dict(self.found.weights)
        return network


def open_source(run: str, game: Game, limits: str | None = None) -> ExportSource:
    """Open the network that a person names; `game` is the one whose champion is meant, `limits` are for the card.

    Raises SettingsError for what is not there or holds no network, CheckpointError for a file that is damaged.
    """
    path = resolve_network(game, run, "run")
    source = _of_champion(path, run) if path.suffix == champion.SUFFIX else _of_checkpoint(path)
    if limits:
        source.found.about["limits"] = limits
    return source


def _of_champion(path: Path, run: str) -> ExportSource:
    found = champion.read(path)
    game = found.settings.load_game()
    load_champion(game, path, _CPU, "run")  # its weights fit, else this says so
    own = run == CHAMPION
    title = f"{game.name} champion" if own else f"{game.name} {path.parent.name}"
    # What comes with the program may lie in a folder that is read-only.
    beside = Path(EXPORT) / f"{game.name}-champion" if own else path.parent / EXPORT
    return ExportSource(title, found, _results(path.parent), beside)


def _of_checkpoint(named: Path) -> ExportSource:
    path, state = checkpoint.load_named(named)
    if holds_table(state):
        raise SettingsError("run", f"{path} is of a run that learned a table; only networks are exported")
    game = game_of(path, state)
    _, settings = load_network(game, path, state, _CPU, "run")
    about = {
        "command": command_of(settings),
        "commit": commit_of(path, settings),
        "decisions": [decisions_of(state)],
        "hours": hours_of(seconds_of(path, settings)),
        "reward": settings.reward_name(game),
    }
    in_run = path.parent.name == "checkpoints"
    folder = path.parent.parent if in_run else path.parent
    best = named.is_dir() or path.name == checkpoint.BEST
    beside = folder / EXPORT if best else folder / EXPORT / path.stem
    results = _results(folder) if in_run and best else {}
    title = f"{game.name} {settings.name}"
    return ExportSource(title, Champion(settings, state["acting"], about, _version()), results, beside)


def _version() -> str:
    from busso.command import __version__

    return __version__


def _results(folder: Path) -> dict[str, Any]:
    """The results there by player; empty where there are none of the network, or they are damaged."""
    try:
        found = read_results(folder) or {}
    except SettingsError:
        return {}
    return {name: row for name, row in found.items() if isinstance(row, dict) and "win_rate" in row}
