"""Kuhn poker in one file, as anybody's own game may be."""

from pathlib import Path

FILE = str(Path(__file__).parent / "kuhn_poker.py")
TYPED = f"game={FILE}"
