"""train.log of a run: a handler for Hydra's configuration, and the same log without Hydra, as in a library."""

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import Any

from hydra.core.hydra_config import HydraConfig

from busso.base.terminal import ScreenHandler, VisibleFormatter

LOG_BYTES = 10_000_000  # of train.log, about a week; it is then renamed to train.log.1, overwriting that


class LogFile(RotatingFileHandler):
    """Log file created at its first line and rotated at `LOG_BYTES`; write errors are reported once and end no run."""

    _failed = False

    def __init__(self, filename: str | Path, **more: Any) -> None:
        super().__init__(filename, maxBytes=LOG_BYTES, backupCount=1, encoding="utf-8", delay=True, **more)

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - called by logging
        """Print the first error only."""
        error = sys.exc_info()[1]
        if not self._failed:
            print(f"warning: {self.baseFilename}: {getattr(error, 'strerror', None) or error}", file=sys.stderr)
        self._failed = True

    def close(self) -> None:
        """Close the file, ignoring write errors."""
        with suppress(OSError):  # closing tries to write once more
            super().close()


@contextmanager
def logged(folder: Path) -> Iterator[None]:
    """Append the run's log lines to train.log and show warnings, unless Hydra's handlers already do."""
    if any(isinstance(handler, LogFile) for handler in logging.getLogger().handlers):
        (folder / "train.log").open("a").close()  # if this fails, the run does not start
        yield
        return
    logger = logging.getLogger("train")
    logger.propagate = not HydraConfig.initialized()  # else Hydra's handler of other commands would print all again
    file, screen = LogFile(folder / "train.log"), ScreenHandler()
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
