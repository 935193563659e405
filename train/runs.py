"""`busso runs [FOLDER]`: list the runs of a folder, the newest last: state, progress and results.

A run is complete, running, stopped, killed, or silent: its machine has written nothing for three minutes. Results are
the shares of games won by opponent, of a complete run the final ones, or the loss of a table.

example:
  busso runs runs/tressette
"""

import json
import os
import re
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from busso.base.lock import OWNER, STALE, read_owner
from busso.cards.player_specs import curve_name
from busso.command.console import result_console
from busso.command.main import command, parser_of
from busso.command.settings.checks import SettingsError
from busso.train.run import curves
from busso.train.run.results import FILE, read_results

_WON, _SPEED = "eval/win_rate_vs_", "time/env_steps_per_second"
_COLUMNS = {"episodes": "rollout/episodes", "iterations": "rollout/iteration"}  # of what budgets count
_UNITS = {"s": 60, "min": 60, "h": 24, "days": 10**9}


def runs_in(top: Path) -> list[dict[str, Any]]:
    """Return all runs below a folder, the newest last. Their settings are not loaded, which would take seconds."""
    folders = (Path(path) for path, inner, files in os.walk(top) if "config.yaml" in files and "checkpoints" in inner)
    return sorted((_run(folder) for folder in folders), key=lambda run: float(run["age"]), reverse=True)


def _run(folder: Path) -> dict[str, Any]:
    config = (folder / "config.yaml").read_text(encoding="utf-8", errors="replace")
    game = re.search(r"^game:\n(?:  .*\n)*?  name: (.*)$", config, re.MULTILINE)  # as `as_yaml` writes it
    state, host = _owner(folder / f".lock{OWNER}")
    try:
        found = read_results(folder)
    except SettingsError:
        found = None
    progress, results = _so_far(folder, config) if found is None else (1.0, _final(found))
    files = [path for name in (curves.FILE, FILE, "config.yaml") if (path := folder / name).exists()]
    return {
        "folder": str(folder),
        "game": game[1] if game else "",
        "name": folder.name,
        "state": "complete" if found is not None and state != "running" else state,
        "host": host,
        "progress": progress,
        "age": round(time.time() - max(path.stat().st_mtime for path in files)),
        "results": results,
    }


def _owner(file: Path) -> tuple[str, str]:
    """Return the state of the process that holds a run, and its machine."""
    try:
        owner, silence = read_owner(file.read_bytes()), time.time() - file.stat().st_mtime
    except OSError:
        owner = None
    if owner is None:
        return "stopped", ""
    return "killed" if owner.has_ended() else "silent" if silence > STALE else "running", owner.host


def _final(found: dict[str, Any]) -> dict[str, float]:
    won = {name: result["win_rate"][0] for name, result in found.items() if isinstance(result, dict)}
    return won or {name: found[name] for name in found.keys() & {"loss"}}


def _so_far(folder: Path, config: str) -> tuple[float | None, dict[str, float]]:
    """Return the share of the budget spent, and the newest evaluation of metrics.csv."""
    try:
        found = curves.read_curves(folder)
    except (OSError, ValueError):  # not written yet, or damaged
        return None, {}
    newest = {name: values[-1] for name, (_, values) in found.items()}
    steps, speeds = found.get(_SPEED, ((), ()))
    pace = zip(steps, (0.0, *steps), speeds, strict=False)
    newest["minutes"] = sum((step - before) / max(speed, 1e-9) for step, before, speed in pace) / 60
    budgets = dict(re.findall(r"^(episodes|iterations|minutes): ([\d.e+]+)$", config, re.MULTILINE))
    shares = [newest.get(_COLUMNS.get(key, "minutes"), 0.0) / float(most) for key, most in budgets.items()]
    listed = re.search(r"^  opponents:\n((?:  - .*\n)+)", config, re.MULTILINE)
    names = {curve_name(name): name for name in re.findall("- (.*)", listed[1] if listed else "")}
    won = {names.get(key, key): value for name, value in newest.items() if (key := name.removeprefix(_WON)) != name}
    return min(1.0, max(shares)) if shares else None, won


def _text(seconds: float) -> str:
    """Return an age in its largest unit."""
    for unit, size in _UNITS.items():
        if seconds < size:
            return f"{seconds:.0f} {unit}"
        seconds /= size
    return "long"


@command
def main(arguments: Sequence[str]) -> int:
    """Run the command line and return the exit code."""
    parser = parser_of("runs", "List the runs of a folder, the newest last.", "runs/tressette")
    parser.add_argument("folder", nargs="?", default="runs", metavar="FOLDER", help="a folder of runs (runs)")
    parser.add_argument("--json", action="store_true", help="print a list of objects")
    typed = parser.parse_args(arguments)
    top = Path(typed.folder.removeprefix("runs="))
    if not top.is_dir():
        raise SettingsError("runs", f"{top} is not a folder", "name one of runs, as in busso runs runs/tressette")
    found = runs_in(top)
    if typed.json:
        print(json.dumps(found, indent=2))
        return 0
    from rich.table import Column, Table  # deferred: --help must be fast

    whole = (Column(name, no_wrap=True) for name in ("state", "", "age"))
    run_name, won_by = (Column(name, overflow="fold") for name in ("run", "games won, or loss"))
    table = Table(Column("game", no_wrap=True), run_name, *whole, won_by, box=None, pad_edge=False)
    for run in found:
        share = "" if run["progress"] is None else f"{run['progress']:.0%}"
        state = f"{run['state']} on {run['host']}" if run["host"] else run["state"]
        won = (f"{name} {value:{'.4g' if name == 'loss' else '.1%'}}" for name, value in run["results"].items())
        name = os.path.relpath(run["folder"], top).removeprefix(f"{run['game']}/")
        table.add_row(run["game"], name, state, share, _text(run["age"]), ", ".join(won))
    result_console().print(table if found else f"no runs in {top}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
