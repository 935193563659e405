"""`python -m evaluate.champion run=RUN to=tressette/champion`: puts a network into a file that travels, with a card.

The file, which is read without running code, its results against other players and a card that says how it came about
and what it cannot do. Without run= the file that is there is measured again, and the card written anew.
"""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
import yaml

from cards import champions
from cards.duplicate import Duel, duel, meaning_of_won
from cards.game import Game
from cards.kinds import same_spelling
from cards.splitmix import stream
from command.checks import MAX_DEALS, MAX_SEED, SettingsError, check_one_of, check_range
from command.compose import as_yaml, compose
from command.console import result_console
from command.line import parse, run_command
from evaluate.card import card
from evaluate.players import load_player
from train.dqn import champion
from train.dqn.frozen import load_champion, load_network
from train.run import checkpoint, results
from train.run.checkpoint import CheckpointError
from train.run.folder import BUDGET_KEYS, CHANGEABLE, CHANGEABLE_GROUPS
from train.run.progress import results_table
from train.run.starts import commit
from train.settings.algorithms import settings_of
from train.settings.dqn import TrainSettings
from train.settings.saved import changes

_CPU = torch.device("cpu")
_STREAM = "champion"  # of the deals: none that a run has seen


@dataclass
class ChampionSettings:
    """The settings of `python -m evaluate.champion`; conf/champion.yaml explains them."""

    to: str = ""
    run: Any = None
    weights: str = "bfloat16"
    command: str | None = None
    commit: str | None = None
    hours: float | None = None
    limits: str | None = None
    players: list[str] | None = None
    deals: int = 4096
    seed: int = 7

    def __post_init__(self) -> None:
        if not self.to:
            raise SettingsError("to: the folder of the file and its card, as in to=tressette/champion")
        check_one_of("weights", self.weights, *champion.FORMATS)
        check_range("deals", self.deals, 2, MAX_DEALS)
        check_range("seed", self.seed, 0, MAX_SEED)
        if self.players is not None:
            self.players = [same_spelling(player) for player in self.players]
        if not all(isinstance(run, str) and run for run in self.runs):
            raise SettingsError(f"run: a run folder or checkpoint, or a list of them, not {self.run!r}")

    @property
    def runs(self) -> list[Any]:
        """Whose networks go into the file; none to measure the one that is there."""
        if self.run is None:
            return []
        return list(self.run) if isinstance(self.run, list) else [self.run]

    @property
    def file(self) -> Path:
        """The file that is written, or measured."""
        return Path(self.to) / champions.FILE


def main(arguments: Sequence[str]) -> int:
    """Run the command line; returns the exit code."""
    logging.basicConfig(format="%(levelname)s: %(message)s")
    return run_command(_main, arguments)


def _main(arguments: Sequence[str]) -> int:
    options = parse("python -m evaluate.champion", "champion", arguments)
    settings = compose(ChampionSettings, "champion", options.overrides)
    if options.print_config:
        print(as_yaml(settings), end="")
        return 0
    if settings.runs:
        put(settings)
    found = champion.read(settings.file)
    game = found.settings.load_game()
    players = settings.players if settings.players is not None else ["random", *game.policies]
    duels = measure(game, settings.file, players, settings.deals, settings.seed)
    results.write(settings.file.parent, results.of_duels(duels, game.unit))
    command = f"python -m evaluate.champion to={settings.to} deals={settings.deals} seed={settings.seed}"
    if settings.players is not None:  # else whoever repeats it meets others than the table has
        command += f" 'players=[{','.join(settings.players)}]'"
    (settings.file.parent / "CARD.md").write_text(card(found, settings.file, game, duels, command))
    result_console().print(results_table(str(settings.file), game.unit, duels, meaning_of_won(game)))
    return 0


def measure(game: Game, file: Path, players: Sequence[str], deals: int, seed: int) -> dict[str, Duel]:
    """The champion in a file against each player on duplicate deals. Raises what loading it and them does."""
    own, _ = load_champion(game, file, _CPU, "to")
    others = {name: load_player(game, name, _CPU) for name in players}
    seeds = stream(seed, _STREAM, 0, deals)
    return {name: duel(game, own, other, seeds) for name, other in others.items()}


def put(settings: ChampionSettings) -> None:
    """Write the networks of the runs into the file, with what is known of how they came about.

    Raises SettingsError for runs of several games or shapes, CheckpointError for one that holds no network.
    """
    kept: list[tuple[TrainSettings, champion.Weights]] = []
    decisions: list[int] = []
    seconds = 0.0
    for run in settings.runs:
        path, state = checkpoint.load_named(Path(run))
        game = _game_of(path, state)
        _, trained = load_network(game, path, state, _CPU, "run")
        kept.append((trained, state["acting"]))
        decisions.append(_decisions(state))
        seconds += _seconds(path)
    first = kept[0][0]
    for run, (trained, _) in zip(settings.runs, kept, strict=True):
        if (differing := changes(champion.shaping(first), champion.shaping(trained))) and len(kept) > 1:
            raise SettingsError(
                f"run: {run} has another {next(iter(differing))} than {settings.runs[0]}; one file has one"
            )
    about = {
        "command": settings.command or command_of(first),
        "commit": settings.commit or commit(),
        "decisions": decisions,
        "hours": settings.hours if settings.hours is not None else (round(seconds / 3600, 2) or None),
        "limits": settings.limits,
        "reward": first.reward_name(first.load_game()),
    }
    champion.write(settings.file, first, [weights for _, weights in kept], about, settings.weights)


def _game_of(path: Path, state: Mapping[str, Any]) -> Game:
    """The game of a checkpoint, under the options that it was trained with."""
    from command.game import load_configured_game

    try:
        return load_configured_game(dict(state["settings"]["game"]))
    except (KeyError, TypeError, ValueError) as error:
        raise CheckpointError(f"{path}: holds no network that can play ({error})") from None


def _decisions(state: Mapping[str, Any]) -> int:
    """After how many decisions a checkpoint was written: the best network says so itself, others by their counters."""
    return int(state["env_steps"] if "env_steps" in state else state.get("counters", {}).get("env_steps", 0))


def _seconds(path: Path) -> float:
    """Of training in the run of a checkpoint file; 0 for a file without its run."""
    try:
        found = checkpoint.load_newest(path.parent, to_go_on=False)
    except CheckpointError:
        return 0.0
    return float(found.state["counters"]["seconds"]) if found is not None else 0.0


def command_of(settings: TrainSettings) -> str | None:
    """A command that trains with these settings: what differs from the game's defaults; None for a game elsewhere."""
    try:
        plain = settings_of([f"game={settings.game_name}"])
    except SettingsError:
        return None
    if isinstance(plain, TrainSettings):  # who plays has all bits that it sees by number, which nobody need say
        plain.network.inputs = plain.network.inputs or settings.load_game().bits
    left_out = {*CHANGEABLE, "name"} - {*BUDGET_KEYS}
    given = [
        _override(key, new)
        for key, (_, new) in changes(asdict(plain), asdict(settings)).items()
        if key not in left_out and not key.startswith(CHANGEABLE_GROUPS)
    ]
    return " ".join(["python -m train", f"game={settings.game_name}", *given])


def _override(key: str, value: object) -> str:
    text = json.dumps(value) if isinstance(value, str) else yaml.safe_dump(value, default_flow_style=True, width=1000)
    text = text.removesuffix("...\n").strip().strip('"')
    return f"'{key}={text}'" if any(letter in text for letter in " [{") else f"{key}={text}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
