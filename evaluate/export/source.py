"""The network to export from a run, a checkpoint or a champion, and its origin."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import torch

from busso.cards.game import Game
from busso.cards.packages import typed_game
from busso.cards.player_specs import CHAMPION
from busso.command.settings.checks import SettingsError
from busso.command.settings.quoting import assigned
from busso.train.network.build import build_network
from busso.train.network.q_network import QNetwork
from busso.train.players import champion_file as champion
from busso.train.players.champion_file import Champion
from busso.train.players.resolve import resolve_network
from busso.train.players.trained import holds_table, load_champion, load_network
from busso.train.run import checkpoint
from busso.train.run.folder import CHANGEABLE, CHANGEABLE_GROUPS
from busso.train.run.read import Run
from busso.train.run.results import read_results
from busso.train.settings.dqn import TrainSettings
from busso.train.settings.resolve import changes, defaults_of
from busso.train.settings.run import BUDGET_KEYS
from busso.version import __version__

_CPU = torch.device("cpu")
EXPORT = "export"  # the folder beside a run
PACKED, BITS = "packed", "bits"  # forms of observations


@dataclass(frozen=True)
class ExportSource:
    """Network to export. `results` are those of results.json, empty for a network that was not measured.

    `beside` is the folder in which an export lies where none is named.
    """

    title: str
    found: Champion
    results: Mapping[str, Any]
    beside: Path

    @cached_property
    def game(self) -> Game:
        """Game with the options of training."""
        return self.found.settings.load_game()

    @cached_property
    def network(self) -> QNetwork:
        """Network in float32, independent of the format of players on this machine."""
        network = build_network(self.game, self.found.settings).eval()
        network.load_state_dict(self.found.weights)
        return network


def open_source(run: str, game: Game) -> ExportSource:
    """Open a network by its name; `game` is the game of `champion`.

    Raises SettingsError if it is missing or contains no network, and for damaged results; CheckpointError for a damaged
    network file.
    """
    path = resolve_network(game, run, "run")
    return _of_champion(path, run == CHAMPION) if path.suffix == champion.SUFFIX else _of_checkpoint(path)


def _of_champion(path: Path, shipped: bool) -> ExportSource:
    found, folder = champion.read(path), path.parent
    game = found.settings.load_game()
    load_champion(game, path, _CPU, "run")  # its weights fit, else this says so
    # What comes with the program may lie in a folder that is read-only.
    beside = Path(EXPORT) / f"{game.name}-champion" if shipped else folder / EXPORT
    title = f"{game.name} {CHAMPION if shipped else folder.name}"
    return ExportSource(title, found, read_results(folder) or {}, beside)


def _of_checkpoint(named: Path) -> ExportSource:
    path, state = checkpoint.load_named(named)
    if holds_table(state):
        raise SettingsError("run", f"{path} is from a run that learned a table; only networks can be exported")
    _, settings = load_network(None, path, state, _CPU, "run")
    found = Champion(settings, state["acting"], _about(path, settings, state), __version__)
    in_run = path.parent.name == "checkpoints"
    folder = path.parent.parent if in_run else path.parent
    best = named.is_dir() or path.name == checkpoint.BEST
    results = read_results(folder) if in_run and best else None
    beside = folder / EXPORT if best else folder / EXPORT / path.stem
    return ExportSource(f"{settings.game_name} {settings.name}", found, results or {}, beside)


def _about(path: Path, settings: TrainSettings, state: Mapping[str, Any]) -> dict[str, Any]:
    """Describe the training of a checkpoint; a fact is None where it is not known."""
    run = Run(path.parent.parent, settings)
    commit = run.launches[-1].get("commit") if run.launches else None
    counters = state if "env_steps" in state else state.get("counters", {})  # the best network has the number itself
    return {
        "command": command_of(settings),
        "commit": commit if isinstance(commit, str) else None,
        "decisions": [int(counters.get("env_steps", 0))],
        "hours": round(float(run.counters.get("seconds", 0)) / 3600, 2) or None,
        "reward": settings.reward_name(settings.load_game()),
    }


def command_of(settings: TrainSettings) -> str | None:
    """Return a command with the settings that differ from the game's defaults; None for a game without defaults."""
    plain = defaults_of(settings)
    if not isinstance(plain, TrainSettings):
        return None
    plain.network.inputs = plain.network.inputs or settings.load_game().bits  # a player knows the number of its bits
    left_out = {*CHANGEABLE, "name"} - {*BUDGET_KEYS}
    given = [
        assigned(key, new)
        for key, (_, new) in changes(asdict(plain), asdict(settings)).items()
        if key not in left_out and not key.startswith(CHANGEABLE_GROUPS)
    ]
    return " ".join(["busso train", f"game={typed_game(settings.game_name)}", *given])
