"""Which file is meant by what a person calls a player. Without PyTorch: rule players need neither a file nor it."""

from __future__ import annotations

import hashlib
from pathlib import Path

from cards import champions
from cards.champions import CHAMPION
from cards.game import Game
from cards.player_specs import parse_spec, player_names

TABLES = (".json", ".npz")


def needs_file(game: Game, text: str) -> bool:
    """Whether a player is made of a file: all but those that the game has by name."""
    if text in player_names(game):
        return False
    named = parse_spec(text)
    return named is None or named.argument is not None or named.name == CHAMPION


def file_of(game: Game, text: str) -> Path | None:
    """The file or run folder that a player is loaded from; None for one that needs none, or is not there.

    Of a folder with policies in tables it is the newest of these, of one with a champion the champion.
    """
    named = parse_spec(text)
    if named is not None and named.argument is not None:
        text = named.argument
    if text == CHAMPION:
        return champions.champion_file(game.name)
    path = Path(text)
    tables = sorted(path.glob("policies/*.npz"), key=lambda table: (len(table.name), table.name))
    if tables:
        return tables[-1]
    if (path / champions.FILE).is_file():
        return path / champions.FILE
    return path if text and (path.exists() or path.suffix in TABLES) else None


def fingerprint(game: Game, text: str) -> str:
    """What tells a player from another that has the same name: the sha256 of its file; "" for one without.

    Raises CheckpointError when no checkpoint of its run is whole.
    """
    path = file_of(game, text) if needs_file(game, text) else None
    return "" if path is None else hashlib.sha256(file_in(path).read_bytes()).hexdigest()


def file_in(path: Path) -> Path:
    """The file itself; of a run folder its best checkpoint, else its newest. Raises CheckpointError if it has none."""
    if not path.is_dir():
        return path
    from train.run.checkpoint import checkpoint  # with PyTorch, for which rule players do not wait

    return checkpoint.load_named(path)[0]
