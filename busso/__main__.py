"""`python -m busso COMMAND [argument ...]`: the command `busso`, where it is not on the path."""

import sys

from busso.command.commands import main

if __name__ == "__main__":
    sys.exit(main())
