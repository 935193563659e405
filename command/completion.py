"""`python -m command.completion SHELL`: print the completion of commands and settings for bash, zsh or fish.

In bash and zsh type `source <(busso completion bash)`, or put that line into ~/.bashrc or ~/.zshrc; in fish
`busso completion fish | source`. It completes `busso` and `python -m MODULE`, and groups by their choices. The script
has all settings, so no Python starts.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from command.main import word_command
from command.settings.checks import SettingsError
from command.settings.completion_scripts import SHELLS, script_for

EXAMPLE = "python -m command.completion bash"


@word_command(__doc__, EXAMPLE)
def main(arguments: Sequence[str]) -> int:
    """Run the command line; returns the exit code."""
    if len(arguments) != 1:
        raise SettingsError("completion", f"say for which shell: {', '.join(SHELLS)}")
    print(script_for(arguments[0]), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
