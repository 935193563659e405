"""Resolution of player texts into kind, options and file; without PyTorch, so that rule players start fast."""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from busso.base import own_files
from busso.base.errors import InputError
from busso.base.own_files import OwnCodeError
from busso.cards.game import Game, PlayerKind
from busso.cards.player_specs import (
    TABLES,
    PlayerSpec,
    file_named,
    kind_and_options,
    named_files,
    player_names,
    read_options,
)
from busso.command.settings.checks import SettingsError, require

TRAINED = PlayerKind(searches=False, values=True)  # a run, a checkpoint or a champion
TABLE = PlayerKind(searches=False)  # a policy table


@dataclass(frozen=True)
class ResolvedPlayer:
    """Player that exists: `name` is its canonical spelling, `path` its file or run folder, if any.

    `code` is the path of the user's own Python file that defines it, if any.
    """

    name: str
    kind: PlayerKind
    options: Any = None
    path: Path | None = None
    code: str | None = None

    @cached_property
    def file(self) -> Path | None:
        """Player's file; the best, else the newest checkpoint of a run folder. CheckpointError if there is none."""
        if self.path is None or not self.path.is_dir():
            return self.path
        from busso.train.run import checkpoint  # imports PyTorch, which rule players do not need

        return checkpoint.load_named(self.path)[0]

    @cached_property
    def sha256(self) -> str:
        """Digest of the player's file at first access; "" without a file."""
        return self.sha256_now()

    def sha256_now(self) -> str:
        """Return the digest of the file now; of a Python file, as it was when named."""
        if self.code is not None:
            return own_files.required(self.code, "players").sha256
        return "" if self.file is None else hashlib.sha256(self.file.read_bytes()).hexdigest()


def resolve(
    game: Game, player: str | PlayerSpec, key: str = "players", others: Sequence[str] = (), tried: bool = True
) -> ResolvedPlayer:
    """Return the player that a text names; an error about an unknown player suggests `others`, too.

    The text is a player of the game by name and options, `monte_carlo:samples:100`; `champion`, the network shipped
    with the game; a run folder, for its best or else newest network, or its newest table; a checkpoint; a `.json` or
    `.npz` policy table; a search with a network, `search:RUN:samples:100`; or a player in a named Python file,
    `./mine.py:Lowest`, which with `tried` plays 16 games as a trial.

    Raises SettingsError naming `key` for an unknown player, a missing file or bad options, and OwnCodeError for an
    error in a Python file.
    """
    try:
        spec = player if isinstance(player, PlayerSpec) else PlayerSpec.parse(player)
        kind, file = game.kinds.get(spec.who), spec.path
        if kind is not None and kind.of_network:
            if spec.of is None:
                raise InputError(spec, "missing run", f"write {spec.who}:runs/{game.name}/default")
            return ResolvedPlayer(str(spec), kind, read_options(kind.options, spec), file_named(game, spec.of))
        if file is None and spec.who not in player_names(game) and Path(str(spec)).exists():
            file = str(spec)  # a folder named by one word
        if file is not None and own_files.parted(file):
            return _of_code(game, spec, key, tried)
        if file is None:
            return ResolvedPlayer(str(spec), *kind_and_options(game, spec, named_files(game, others)))
        path = file_named(game, file)
        return ResolvedPlayer(str(spec), TABLE if path.suffix in TABLES else TRAINED, None, path)
    except OwnCodeError:
        raise
    except InputError as error:
        raise SettingsError(key, error) from None


def _of_code(game: Game, spec: PlayerSpec, key: str, tried: bool) -> ResolvedPlayer:
    from busso.cards.own.players import own_player, try_player  # imports Numba, which other players do not need

    if own_files.find(str(spec.path)) is None and not Path(str(spec.path)).is_file():
        raise InputError("", f"{spec.path} does not exist")
    if own_files.find(str(spec.path)) is None:
        typed = f"{key.removesuffix('.mix')}=..."
        raise InputError(
            "", f"{spec} is code, which runs only if you name it", f"if you trust it, type {typed} with {spec}"
        )
    found = own_player(spec, key)
    if tried:
        try_player(game, found)
    return ResolvedPlayer(str(spec), found.kind, code=found.file.path)


def resolve_all(game: Game, players: Iterable[str]) -> dict[str, ResolvedPlayer]:
    """Resolve players, by name. Raises SettingsError as `resolve`, and if one is named twice."""
    found = [resolve(game, player) for player in players]
    names = [player.name for player in found]
    require(len(set(names)) == len(names), "players", "each player once", names)
    return dict(zip(names, found, strict=True))


def resolve_network(game: Game, text: str, key: str) -> Path:
    """Return the file or run folder of a trained network or table; raises SettingsError naming `key`."""
    player = resolve(game, text, key)
    if player.path is None or player.kind is not TRAINED:
        raise SettingsError(key, f"{text} is not a network", "name a run folder, a checkpoint or champion")
    return player.path
