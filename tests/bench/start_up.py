"""Start-up time of commands, as a ratio to `python -c "import torch, numba"`.

Each command runs once before it is measured, to fill the cache of compiled code. Then commands and imports take turns,
and the best wall-clock time of each counts.
"""

import json
import os
import pty
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from fcntl import ioctl
from itertools import count
from pathlib import Path
from struct import pack
from termios import TIOCSWINSZ

from tests.bench.timing import report

ROOT = Path(__file__).parents[2]
ROUNDS, ROUNDS_OF_TRAINING = 3, 2
LONGEST = 180.0  # seconds to wait for any output
IMPORTS = ("-c", "import torch, numba")
_ROWS, _COLUMNS = 40, 120
_MENU = b"Sette e mezzo"  # last game in the menu

Measured = Callable[[Path], float]  # seconds of one start, given a scratch folder


def start_up() -> None:
    """Measure the commands of rule players and of the champion, and the table."""
    _report(
        {
            "start_of_rule_tournament": (0.6, _tournament("greedy,random")),
            "start_of_champion_tournament": (1.5, _tournament("champion,greedy")),
            "start_of_replay": (0.4, _replay),
            "start_of_table": (0.5, first_screen),
        },
        ROUNDS,
    )


def start_of_training() -> None:
    """Measure the time from `busso train` to the first update, with local play and with Ray workers."""
    _report(
        {
            "first_update_local_over_imports": (2.0, _first_update("rollout=local")),
            "first_update_ray_over_imports": (3.0, _first_update("rollout=ray")),
        },
        ROUNDS_OF_TRAINING,
    )


def _report(figures: dict[str, tuple[float, Measured]], rounds: int) -> None:
    names = ["imports", *figures]
    functions = [_imports, *(function for _, function in figures.values())]
    with tempfile.TemporaryDirectory() as folder:
        best = best_of(functions, Path(folder), rounds)
    taken = dict(zip(names, best, strict=True))
    for name, (target, _) in figures.items():
        ratio = taken[name] / taken["imports"]
        seconds = {"seconds": round(taken[name], 2), "imports": round(taken["imports"], 2)}
        report(name, ratio, "ratio", target=target, direction="at most", **seconds)


def best_of(functions: Sequence[Measured], folder: Path, rounds: int) -> list[float]:
    """Return the least seconds of each; they take turns, after an uncounted first turn."""
    numbers = count()
    best = [float("inf")] * len(functions)
    for turn in range(rounds + 1):
        for k, function in enumerate(functions):
            here = folder / str(next(numbers))  # a new folder, so that no run is resumed
            here.mkdir()
            taken = function(here)
            if turn:
                best[k] = min(best[k], taken)
    return best


def _imports(folder: Path) -> float:
    return _run([sys.executable, *IMPORTS], folder)


def _run(command: Sequence[str], folder: Path) -> float:
    started = time.perf_counter()
    subprocess.run(
        command, cwd=folder, env=_environment(), check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    return time.perf_counter() - started


def _environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT), "TERM": "xterm-256color"}


def _tournament(players: str) -> Measured:
    words = ["-m", "busso.evaluate.tournament", f"players=[{players}]", "deals=64", "folder=tournament"]
    return lambda folder: _run([sys.executable, *words], folder)


def _replay(folder: Path) -> float:
    """Replay the valid golden records, since an invalid one changes the exit code."""
    golden = ROOT / "tests" / "golden"
    records = (golden / "records.jsonl").read_text().splitlines(keepends=True)
    results = map(json.loads, (golden / "records.expected.jsonl").read_text().splitlines())
    file = folder / "games.jsonl"
    file.write_text("".join(records[each["line"] - 1] for each in results if "error" not in each))
    return _run([sys.executable, "-m", "busso.evaluate.replay", file.name], folder)


def first_screen(folder: Path) -> float:
    """Return the seconds from `busso play` in a new terminal to its menu."""
    started = time.perf_counter()
    process, terminal = pty.fork()
    if process == 0:
        os.chdir(folder)
        os.execve(sys.executable, [sys.executable, "-m", "busso.play", "lang=en"], _environment())
    try:
        ioctl(terminal, TIOCSWINSZ, pack("HHHH", _ROWS, _COLUMNS, 0, 0))
        _read_until(terminal, _MENU)
        return time.perf_counter() - started
    finally:
        os.kill(process, signal.SIGKILL)
        os.close(terminal)
        os.waitpid(process, 0)


def _read_until(descriptor: int, wanted: bytes) -> None:
    """Read until `wanted` appears. Raises RuntimeError if the process ends first or stays silent for too long."""
    seen = b""
    deadline = time.monotonic() + LONGEST
    while wanted not in seen:
        ready = select.select([descriptor], [], [], max(0.0, deadline - time.monotonic()))[0]
        more = b""
        with suppress(OSError):  # the process has ended
            more = os.read(descriptor, 1 << 16) if ready else b""
        if not more:
            raise RuntimeError(f"{wanted!r} did not come, but {seen[-500:]!r}")
        seen += more


def _first_update(rollout: str) -> Measured:
    def measured(folder: Path) -> float:
        log = folder / "runs" / "tressette" / "bench" / "train.log"
        command = [sys.executable, "-m", "busso.train", "minutes=1.5", "name=bench", rollout]
        started = time.perf_counter()
        process = subprocess.Popen(
            command, cwd=folder, env=_environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        try:
            while not (log.exists() and "first update" in log.read_text()):
                if process.poll() is not None or time.perf_counter() - started > LONGEST:
                    raise RuntimeError("the run had no first update")
                time.sleep(0.02)
            return time.perf_counter() - started
        finally:
            process.terminate()
            process.wait()

    return measured


FIGURES = (start_up, start_of_training)
