"""Module preloaded by a fork server, so that tests can start and kill dozens of drivers with compiled code."""

import os
import tempfile
from pathlib import Path

from busso.train.__main__ import main
from tests.train.runs import small


def train(arguments: list[str]) -> None:
    """Run the command in this process, silently."""
    with Path(os.devnull).open("w") as nothing:
        os.dup2(nothing.fileno(), 1)
        os.dup2(nothing.fileno(), 2)
    os._exit(main(arguments))


if os.environ.get("BUSSO_TEST_WARM"):
    with tempfile.TemporaryDirectory() as folder:
        main(small(Path(folder), "episodes=128"))
