"""The reduced Spike lies outside of the packages of busso, as anybody's own game may: this is its PYTHONPATH."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
