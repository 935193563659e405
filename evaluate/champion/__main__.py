"""`busso champion run=RUN to=tressette/champion`: write a network to a file for others, with a card.

Reading the file runs no code. Beside it are its results against other players and a card: how it was made, and its
limits. Without run= the existing file is measured again and the card rewritten.

example:
  busso champion run=runs/tressette/default to=tressette/champion
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from busso.cards import player_specs
from busso.cards.base.bounds import bounded
from busso.cards.compiled.splitmix import stream
from busso.cards.game import Game
from busso.cards.matches.duplicate import Duel, duel, meaning_of_won
from busso.command.app import settings_command
from busso.command.settings.checks import MAX_DEALS, MAX_MINUTES, MAX_SEED, SettingsError, check_numbers, check_one_of
from busso.command.settings.quoting import as_text, for_shell
from busso.command.terminal.console import result_console
from busso.command.terminal.progress import Progress
from busso.evaluate.champion.card import card
from busso.evaluate.champion.provenance import command_of, decisions_of, game_of, hours_of, seconds_of
from busso.evaluate.players import load_resolved
from busso.train.dqn.players import champion_file as champion
from busso.train.dqn.players.load import load_champion, load_network
from busso.train.dqn.players.resolve import resolve_all
from busso.train.run import results
from busso.train.run.checkpoint import checkpoint
from busso.train.run.launches import commit
from busso.train.run.progress import results_table
from busso.train.settings.dqn import TrainSettings
from busso.train.settings.saved import changes

_CPU = torch.device("cpu")
_STREAM = "champion"  # of the deals: none that a run has seen


@dataclass
class ChampionSettings:
    """The settings of `busso champion`; conf/champion.yaml explains them."""

    to: str = ""
    run: Any = None
    weights: str = "bfloat16"
    command: str | None = None
    commit: str | None = None
    hours: float | None = bounded(None, 0.0, MAX_MINUTES)
    limits: str | None = None
    players: list[str] | None = None
    deals: int = bounded(4096, 2, MAX_DEALS)
    seed: int = bounded(7, 0, MAX_SEED)

    def __post_init__(self) -> None:
        check_numbers("", self)
        if not self.to:
            raise SettingsError("to", "the folder of the file and its card, as in to=tressette/champion")
        check_one_of("weights", self.weights, *champion.FORMATS)
        if not all(isinstance(run, str) and run for run in self.runs):
            raise SettingsError("run", f"a run folder or checkpoint, or a list of them, not {self.run!r}")

    @property
    def runs(self) -> list[Any]:
        """Whose networks go into the file; none to measure the one that is there."""
        if self.run is None:
            return []
        return list(self.run) if isinstance(self.run, list) else [self.run]

    @property
    def file(self) -> Path:
        """The file that is written, or measured."""
        return Path(self.to) / player_specs.CHAMPION_FILE


@settings_command(ChampionSettings, "champion")
def main(settings: ChampionSettings) -> None:
    """Run the command."""
    if settings.runs:
        put(settings)
    found = champion.read(settings.file)
    game = found.settings.load_game()
    players = settings.players if settings.players is not None else ["random", *game.policies]
    try:
        duels = measure(game, settings.file, players, settings.deals, settings.seed)
    except KeyboardInterrupt:
        print(f"stopped: {settings.file} is there; the same command without run= measures it", file=sys.stderr)
        raise
    found_results = results.of_duels(duels, game.unit)
    results.write(settings.file.parent, found_results)
    command = f"busso champion to={settings.to} deals={settings.deals} seed={settings.seed}"
    if settings.players is not None:  # else a repetition meets other players than the table has
        command += " " + for_shell(f"players=[{','.join(map(as_text, settings.players))}]")
    (settings.file.parent / "CARD.md").write_text(
        card(found, settings.file, game, found_results, command), encoding="utf-8"
    )
    result_console().print(results_table(str(settings.file), game.unit, duels, meaning_of_won(game)))


def measure(game: Game, file: Path, players: Sequence[str], deals: int, seed: int) -> dict[str, Duel]:
    """The champion in a file against each player on duplicate deals. Raises what loading it and them does."""
    own, _ = load_champion(game, file, _CPU, "to")
    found = resolve_all(game, players)
    others = {name: load_resolved(game, player) for name, player in found.items()}
    seeds = stream(seed, _STREAM, 0, deals)
    duels = {}
    with Progress("measuring", len(others), "players") as progress:
        for name, other in others.items():
            duels[name] = duel(game, own, other, seeds)
            progress.advance()
    return duels


def put(settings: ChampionSettings) -> None:
    """Write the networks of the runs into the file, with what is known of how they came about.

    Raises SettingsError for runs of several games or shapes, CheckpointError for one that holds no network.
    """
    kept: list[tuple[TrainSettings, champion.Weights]] = []
    decisions: list[int] = []
    seconds = 0.0
    for run in settings.runs:
        path, state = checkpoint.load_named(Path(run))
        game = game_of(path, state)
        _, trained = load_network(game, path, state, _CPU, "run")
        kept.append((trained, state["acting"]))
        decisions.append(decisions_of(state))
        seconds += seconds_of(path, trained)
    first = kept[0][0]
    for run, (trained, _) in zip(settings.runs, kept, strict=True):
        if (differing := changes(champion.shaping(first), champion.shaping(trained))) and len(kept) > 1:
            raise SettingsError(
                "run", f"{run} has another {next(iter(differing))} than {settings.runs[0]}", "name runs that share it"
            )
    about = {
        "command": settings.command or command_of(first),
        "commit": settings.commit or commit(),
        "decisions": decisions,
        "hours": settings.hours if settings.hours is not None else hours_of(seconds),
        "limits": settings.limits,
        "reward": first.reward_name(first.load_game()),
    }
    champion.write(settings.file, first, [weights for _, weights in kept], about, settings.weights)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
