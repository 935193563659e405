"""Briscola lies in examples/, outside of the packages of busso: this is its PYTHONPATH."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "examples" / "briscola"))
