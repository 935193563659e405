"""Where a game is: busso's own are packages in busso, others are files that a person named, or installed."""

from __future__ import annotations

from pathlib import Path

from busso.cards.base import own_files

_BUSSO = Path(__file__).parents[2]


def package_of(game: str) -> str:
    """The package of the game of that name, whether there is one or not."""
    if file := own_files.game_file(game):
        return f"{own_files.PREFIX}.{file.name}"
    own = game.isidentifier() and (_BUSSO / game / "rules.py").is_file()
    return f"busso.{game}" if own else game
