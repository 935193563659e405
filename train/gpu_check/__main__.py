"""`python -m train.gpu_check [key=value ...]`: tests, measurements and a run on this machine's GPU, in one report."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cards.base.bounds import bounded
from command.main import command
from command.settings.checks import MAX_MINUTES, check_numbers
from command.settings.line import parse

EXAMPLE = "python -m train.gpu_check folder=gpu_check"


@dataclass
class GpuCheckSettings:
    """The settings of `python -m train.gpu_check`; conf/gpu_check.yaml explains them."""

    folder: str = "gpu_check"
    minutes: float = bounded(10.0, 0.0, MAX_MINUTES, above=True)

    def __post_init__(self) -> None:
        check_numbers("", self)


@command
def main(arguments: Sequence[str]) -> int:
    """Run the command line; returns the exit code, 1 where a part failed."""
    settings = parse("python -m train.gpu_check", "gpu_check", arguments, EXAMPLE).compose(GpuCheckSettings)
    if settings is None:
        return 0
    from train.gpu_check import parts, work

    folder = Path(settings.folder).absolute()
    return work.check(folder, parts.all_parts(folder, settings.minutes))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
