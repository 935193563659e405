"""Runs the parts of a check one by one; finished parts are in gpu_check.json at once and are not repeated."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from cards.base.files import make_folder, write_atomic
from command.settings.checks import SettingsError
from command.settings.foreign import read_json
from train.gpu_check.parts import ROOT, Part, in_a_clone, machine
from train.gpu_check.report import FAILED, LEFT_OUT, PASSED, markdown

FILE, PAGE = "gpu_check.json", "gpu_check.md"
_ENDS = PASSED, FAILED, LEFT_OUT
_SAME = ("version", "commit", "torch", "gpus")
_GRACE = 60.0  # seconds between SIGTERM and SIGKILL, in which a training writes its checkpoint
_LINES = 12  # of the output of a part, at most


def check(folder: Path, parts: Sequence[Part]) -> int:
    """Do the parts that are not done; if all are, repeat those that did not pass. Returns 1 if one has failed.

    Raises SettingsError for a folder with the check of another program or machine, and for a clone without pytest.
    """
    if any(part.clone for part in parts) and in_a_clone() and find_spec("pytest") is None:
        hint = ".venv/bin/pip install --constraint constraints.txt --editable '.[dev,gpu]'"
        raise SettingsError("pytest", "is not installed", hint)
    make_folder(folder)
    found = _resumed(folder)
    done: dict[str, Any] = found["parts"]
    waiting = [part for part in parts if part.name not in done]
    for part in waiting or [part for part in parts if done[part.name]["result"] != PASSED]:
        print(f"{part.name}: at most {part.seconds:.0f} s", file=sys.stderr, flush=True)
        done[part.name] = result = _done(part, folder)
        write_atomic(folder / FILE, json.dumps(found, indent=2) + "\n")
        write_atomic(folder / PAGE, markdown(found, [part.name for part in parts], folder))
        print(f"{part.name}: {result['result']} after {result['seconds']:.0f} s", file=sys.stderr, flush=True)
    names = {result: [part.name for part in parts if done[part.name]["result"] == result] for result in _ENDS}
    print(f"{folder / PAGE}: " + "; ".join(f"{result}: {', '.join(each)}" for result, each in names.items() if each))
    return 1 if names[FAILED] else 0


def _resumed(folder: Path) -> dict[str, Any]:
    """What was found before, in parts by name, and the machine."""
    output = subprocess.run(machine(), check=True, stdout=subprocess.PIPE, text=True, env=_environment()).stdout
    here, path = json.loads(output.splitlines()[-1]), folder / FILE
    try:
        before = read_json(path.read_text()) if path.exists() else {"machine": here, "parts": {}}
        done, was = dict(before["parts"]), {key: before["machine"][key] for key in _SAME}
    except (ValueError, LookupError, TypeError):
        raise SettingsError("folder", f"{path} is no result of a check", "choose another with folder=...") from None
    for key in _SAME:
        if was[key] != here[key]:
            problem = f"{folder} has the check of {key}={was[key]}, here it is {here[key]}"
            raise SettingsError("folder", problem, "choose another with folder=...")
    return {"machine": here, "parts": done}


def _done(part: Part, folder: Path) -> dict[str, Any]:
    """Do a part; its output goes to a file of the folder."""
    if missing := part.missing():
        return {"result": LEFT_OUT, "seconds": 0.0, "says": [missing], "figures": []}
    began, log = time.monotonic(), folder / f"{part.name}.log"
    with log.open("wb") as output:
        code = _exit_code(part, output)
    lines = [line.strip(" =\r") for line in log.read_text(errors="replace").splitlines()]
    figures = [json.loads(line) for line in lines if line.startswith('{"figure"')]
    says = [line for line in lines if re.search(part.shows, line)][:_LINES]
    result = FAILED if code != 0 else PASSED if figures or says else LEFT_OUT
    if result != PASSED:
        says = [*(["time limit reached"] if code is None else []), *list(filter(None, lines))[-1:]]
    return {"result": result, "seconds": round(time.monotonic() - began, 1), "says": says, "figures": figures}


def _exit_code(part: Part, output: Any) -> int | None:
    """That of the command; None where time limit reached. Whatever happens, nothing of it is left."""
    where, streams = ROOT if part.clone else None, {"stdout": output, "stderr": subprocess.STDOUT}
    process = subprocess.Popen(part.command, cwd=where, env=_environment(), start_new_session=True, **streams)
    try:
        return process.wait(part.seconds)
    except subprocess.TimeoutExpired:
        return None
    finally:
        for number in (signal.SIGTERM, signal.SIGKILL):
            try:
                os.killpg(process.pid, number)
                process.wait(_GRACE)
            except ProcessLookupError:
                break
            except subprocess.TimeoutExpired:
                continue


def _environment() -> dict[str, str]:
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    return {**os.environ, "PYTHONPATH": path, "PYTHONUNBUFFERED": "1", "COLUMNS": "200"}
