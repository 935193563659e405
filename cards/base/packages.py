"""Where a game is: busso's own are packages in busso, others are where their authors have them."""

from __future__ import annotations

from pathlib import Path

_BUSSO = Path(__file__).parents[2]


def package_of(game: str) -> str:
    """The package of the game of that name, whether there is one or not."""
    own = game.isidentifier() and (_BUSSO / game / "rules.py").is_file()
    return f"busso.{game}" if own else game
