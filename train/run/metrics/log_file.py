"""train.log of a run: Hydra's handler for it, and the same log where no Hydra runs, as in a library."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import Any

from hydra.core.hydra_config import HydraConfig

from busso.command.terminal.visible import VisibleFormatter

LOG_BYTES = 10_000_000  # of train.log, a week of lines; then it is renamed, over the one that was renamed before


class LogFile(RotatingFileHandler):
    """A file that is there with its first line; what is older than `LOG_BYTES` is in train.log.1.

    Says once that lines cannot be written: no run fails because of its log.
    """

    _failed = False

    def __init__(self, filename: str | Path, **more: Any) -> None:
        super().__init__(filename, maxBytes=LOG_BYTES, backupCount=1, encoding="utf-8", delay=True, **more)

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - the name that logging calls
        """Say it once."""
        error = sys.exc_info()[1]
        if not self._failed:
            print(f"warning: {self.baseFilename}: {getattr(error, 'strerror', None) or error}", file=sys.stderr)
        self._failed = True

    def close(self) -> None:
        """As a handler has it."""
        with suppress(OSError):  # which closing tries to write once more
            super().close()


@contextmanager
def logged(folder: Path) -> Iterator[None]:
    """Append the run's log lines to train.log, and show warnings, unless Hydra's handlers of a run do both."""
    if any(isinstance(handler, LogFile) for handler in logging.getLogger().handlers):
        (folder / "train.log").open("a").close()  # where that fails the run does not start
        yield
        return
    logger = logging.getLogger("train")
    logger.propagate = not HydraConfig.initialized()  # else its handler for other commands would show all again
    file, screen = LogFile(folder / "train.log"), logging.StreamHandler()
    file.setFormatter(VisibleFormatter("%(asctime)s %(levelname)s %(message)s"))
    screen.setLevel(logging.WARNING)
    logger.setLevel(logging.INFO)
    for handler in (file, screen):
        logger.addHandler(handler)
    try:
        yield
    finally:
        logger.propagate = True
        for handler in (file, screen):
            logger.removeHandler(handler)
            handler.close()
