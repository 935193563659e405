"""Kuhn poker in one file, like a user-defined game."""

from pathlib import Path

FILE = str(Path(__file__).parent / "kuhn_poker.py")
TYPED = f"game={FILE}"
