"""Imported once by a fork server, so that a test can start and kill dozens of drivers that have everything compiled."""

import os
import tempfile
from pathlib import Path

from busso.train.__main__ import main
from tests.train.runs import small


def train(arguments: list[str]) -> None:
    """Run the command in this process, without a word."""
    with Path(os.devnull).open("w") as nothing:
        os.dup2(nothing.fileno(), 1)
        os.dup2(nothing.fileno(), 2)
    os._exit(main(arguments))


if os.environ.get("BUSSO_TEST_WARM"):
    with tempfile.TemporaryDirectory() as folder:
        main(small(Path(folder), "episodes=128"))
