"""`python -m busso COMMAND [argument ...]`: the `busso` command where it is not on the PATH."""

import sys

from busso.command.commands import main

if __name__ == "__main__":
    sys.exit(main())
