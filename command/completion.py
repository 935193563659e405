"""Shell completion of `busso`: Hydra's completion of one command's settings, for every command."""

import os
import sys
from collections.abc import Sequence

from omegaconf import DictConfig

from busso.command.app import run_app
from busso.command.commands import COMMANDS
from busso.command.conf_folder import CONF
from busso.command.main import command


@command
def complete(arguments: Sequence[str]) -> int | None:
    """Answer `busso [COMMAND] -sc ...`: print the shell script, or completions for the words of COMP_LINE."""
    asked = [each for each in arguments if each not in COMMANDS]
    words = os.environ.get("COMP_LINE", "").split(" ")[1:]
    if not any(each.startswith("query=") for each in asked):
        return run_app("train", _nothing, asked)
    if len(words) < 2:
        print(*COMMANDS)
    elif (CONF / f"{words[0]}.yaml").exists():
        os.environ["COMP_LINE"] = " ".join(["busso", *words[1:]])
        return run_app(words[0], _nothing, asked)
    return 0


def _nothing(config: DictConfig) -> None:
    """Do nothing: the job of a completion."""


if __name__ == "__main__":
    sys.exit(complete(sys.argv[1:]))
