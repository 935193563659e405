"""`python -m tests.bench time_to_strength`: time of busso and two peers to a given strength, in one run.

First busso runs alone on all CPUs, then both peers side by side, with one thread each. `--commit` keeps the curves
(KEPT), draws the picture and writes the table into the page; `--page` does the last two from the kept curves.
"""

import argparse
import json
import sys
import tempfile
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import Any

from busso.base.files import write_atomic
from tests.bench import figures
from tests.bench.strength import curves, sides
from tests.bench.strength.peers import DEALS, OPPONENTS

ROOT = Path(__file__).parents[3]
KEPT = Path(__file__).parent / "time_to_strength.json"
PICTURE = ROOT / "docs" / "pictures" / "time_to_strength.png"
PAGE = ROOT / "docs" / "explanation" / "performance.md"
BEGIN, END = "<!-- time_to_strength: python -m tests.bench writes this -->", "<!-- /time_to_strength -->"


def main(arguments: Sequence[str]) -> int:
    """Measure, or write the page."""
    parser = argparse.ArgumentParser("python -m tests.bench time_to_strength", description=__doc__)
    parser.add_argument("--minutes", type=float, default=9.0, help="of busso")
    parser.add_argument("--peer-minutes", type=float, help="of the CPU, for each peer (default: as --minutes)")
    parser.add_argument("--commit", action="store_true", help="keep the curves; write the picture and the page")
    parser.add_argument("--page", action="store_true", help="measure nothing; picture and page of the kept curves")
    options = parser.parse_args(arguments)
    if options.page:
        write_page(json.loads(KEPT.read_text()))
        return 0
    peer_minutes = options.peer_minutes or options.minutes
    command = " ".join(["python -m tests.bench time_to_strength", *arguments])
    kept = measured(options.minutes, peer_minutes, command)
    print("\n".join(page(kept)))
    if options.commit:
        write_atomic(KEPT, json.dumps(kept, indent=1) + "\n")
        write_page(kept)
    return 0


def measured(minutes: float, peer_minutes: float, command: str) -> dict[str, Any]:
    """Measure all sides and return the data to keep."""
    about = {"date": date.today().isoformat(), "machine": figures.machine(), "load": figures.load()}
    about |= {"command": command, "minutes": minutes, "peer_minutes": peer_minutes}
    found = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        peers = [sides.peer(each, folder, peer_minutes) for each in sides.SETTINGS]
        for together, limit in (([sides.busso(folder, minutes)], minutes), (peers, peer_minutes)):
            print(", ".join(each.name for each in together), file=sys.stderr, flush=True)
            found += sides.run(together, folder, 60 * limit)
    return curves.to_json(found, about)


def page(kept: dict[str, Any]) -> list[str]:
    """Return the lines of the page: method and table."""
    found = curves.of_json(kept)
    spent = [f"{each.evaluating:.0f} s of {each.name}" for each in found if each.evaluating is not None]
    return [
        "CPU seconds / wall-clock seconds from the command to the result of the evaluation that reaches the level:",
        "",
        *curves.table(found),
        "",
        f"* Machine: {kept['machine']}, {kept['date']}; {kept['load']:.2f} processes for each core before it began.",
        f"* Command: `{kept['command']}`.",
        f"  busso had {kept['minutes']:g} minutes and all cores, each peer {kept['peer_minutes']:g} minutes of the CPU",
        "  and one thread, both at the same time.",
        f"* An evaluation is {DEALS:,} duplicate deals against each of `{'` and `'.join(OPPONENTS)}`, the same for",
        f"  all three. Its time is included for all: {', '.join(spent) or 'unknown'}.",
        "  busso's workers evaluate between games, so its evaluation time is not listed.",
    ]


def write_page(kept: dict[str, Any]) -> None:
    """Draw the picture, and write the lines between the page's markers."""
    curves.draw(curves.of_json(kept), PICTURE)
    text = PAGE.read_text()
    before, after = text.split(BEGIN)[0], text.split(END)[1]
    write_atomic(PAGE, before + "\n".join([BEGIN, "", *page(kept), "", END]) + after)
