"""Every module is imported as busso.NAME only, also in Ray's workers."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.train.runs import SMALL

ROOT = Path(__file__).parents[1]
# User-defined game with the name of a module in a clone; it records the imports wherever games are played.
PROBE = """
import json, os, sys, threading, time
from dataclasses import replace
from pathlib import Path
import cards
from busso.blackjack import GAME as BLACKJACK

def note():
    files = {name: getattr(module, "__file__", None) for name, module in list(sys.modules.items())}
    new = Path(__file__).with_name(f"{os.getpid()}.{threading.get_ident()}")
    new.write_text(json.dumps(files))
    new.rename(new.with_suffix(".json"))

def keep_noting():
    while True:
        note()
        time.sleep(0.05)

threading.Thread(target=keep_noting, daemon=True).start()
GAME = replace(BLACKJACK, name=cards.NAME)
"""
EVERYTHING = """
import importlib, pkgutil, sys
import busso
missing = set()
for each in pkgutil.walk_packages(busso.__path__, "busso."):
    try:
        importlib.import_module(each.name)
    except ModuleNotFoundError as error:
        missing.add(error.name)
assert missing <= {"gymnasium", "pettingzoo"}, missing
busso.load_game("./probe.py")
busso.train_agent(*sys.argv[1:], quiet=True)
sys.modules["busso_own.probe"].note()
"""


def called(*command: str, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"PYTHONPATH": f"{cwd}{os.pathsep}{ROOT}"}
    return subprocess.run(command, cwd=cwd, env=environment, check=False, capture_output=True, text=True)


@pytest.mark.ray
@pytest.mark.slow
def test_each_file_is_one_module(tmp_path: Path) -> None:
    """In a process that has imported everything and trained, and in Ray's workers."""
    (tmp_path / "probe.py").write_text(PROBE)
    (tmp_path / "cards.py").write_text("NAME = 'probe'\n")
    settings = ["game=./probe.py", "rollout=ray", "rollout.workers=1", *SMALL[1:]]
    found = called(sys.executable, "-c", EVERYTHING, *settings, cwd=tmp_path)
    assert found.returncode == 0, found.stderr
    noted = [json.loads(path.read_text()) for path in tmp_path.glob("*.json")]
    assert len(noted) > 1 and any("busso.train.dqn.rollout.worker" in each and "ray" in each for each in noted)
    for modules in noted:
        names: dict[str, list[str]] = {}
        for name, file in modules.items():
            if (
                str(file).startswith("/")
                and ROOT in (path := Path(file).resolve()).parents
                and ".venv" not in path.parts
            ):
                names.setdefault(str(path), []).append(name)
        assert len(names) > 20
        assert [
            each for each in names.values() if len(set(each) - {"__main__"}) > 1 or not each[0].startswith("busso")
        ] == []


def test_the_folder_train_of_a_clone_is_no_second_module() -> None:
    found = called(sys.executable, "-c", "import train")
    assert found.stderr.splitlines()[-1] == "ImportError: train is busso.train: import that"
