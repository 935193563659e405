"""`python -m tests.bench.strength.search NAME`: settings of a peer, one after another, 150 CPU seconds each.

For each setting in turn every alternative is tried; the one with the greatest sum of hands won against both opponents
stays. Each row is a process of its own; 4,096 duplicate deals at its end. Prints a Markdown table as it goes.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.bench.strength.peers import OPPONENTS

SECONDS, DEALS = 150, 4096
Settings = dict[str, str]
BEGINNING: dict[str, Settings] = {
    "dqn": {"opponents": "itself", "lr": "1e-3", "batch-size": "512", "capacity": "1000000", "fraction": "0.1"},
    "ppo": {"opponents": "greedy", "lr": "1e-3", "n-steps": "40", "ent-coef": "0.0", "n-epochs": "10"},
}
TRIED: dict[str, tuple[tuple[str, tuple[str, ...]], ...]] = {
    "dqn": (
        ("opponents", ("greedy", "random")),
        ("lr", ("3e-4",)),
        ("batch-size", ("256", "1024")),
        ("capacity", ("100000",)),
        ("fraction", ("0.5",)),
    ),
    "ppo": (
        ("opponents", ("itself", "random")),
        ("lr", ("3e-4",)),
        ("n-epochs", ("4",)),
        ("n-steps", ("120",)),
        ("ent-coef", ("0.01",)),
    ),
}


def measured(name: str, settings: Settings) -> tuple[dict[str, float], int]:
    """Hands won against each opponent at the end, and the decisions until then."""
    words = [word for key, value in settings.items() for word in (f"--{key}", value)]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "points.jsonl"
        limits = ["--seconds", str(SECONDS), "--deals", str(DEALS), "--only-last"]
        command = [sys.executable, "-m", "tests.bench.strength.peers", name, str(file), *limits, *words]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=os.environ | {"OMP_NUM_THREADS": "1"})
        row = json.loads(file.read_text().splitlines()[-1])
    return {opponent: row[opponent] for opponent in OPPONENTS}, row["decisions"]


def main(arguments: Sequence[str]) -> int:
    """Search, and print the rows."""
    (name,) = arguments
    best = BEGINNING[name]
    print(f"| {' | '.join(best)} | decisions | {' | '.join(f'`{each}`' for each in OPPONENTS)} |")
    print("|---" * (len(best) + 1 + len(OPPONENTS)) + "|")
    score = 0.0
    for key, values in (("", ("",)), *TRIED[name]):
        for value in values:
            settings = best | ({key: value} if key else {})
            won, decisions = measured(name, settings)
            shares = " | ".join(f"{won[each]:.1%}" for each in OPPONENTS)
            print(f"| {' | '.join(settings.values())} | {decisions:,} | {shares} |", flush=True)
            if sum(won.values()) > score:
                score, kept = sum(won.values()), settings
        best = kept
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
