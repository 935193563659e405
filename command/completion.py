"""`python -m command.completion bash`: print the completion of commands and settings for bash.

Type `source <(busso completion bash)`, or put that line into ~/.bashrc. It completes `busso` and `python -m MODULE`,
and groups by their choices. The script has all settings, so no Python starts.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from command.main import word_command
from command.settings.completion_script import script_for

EXAMPLE = "python -m command.completion bash"


@word_command(__doc__, EXAMPLE)
def main(arguments: Sequence[str]) -> int:
    """Run the command line; returns the exit code."""
    print(script_for(" ".join(arguments)), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
