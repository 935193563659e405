"""`busso COMMAND [argument ...]`: the program, which `python -m busso` starts where it is not on the PATH."""

import signal
import sys


def main() -> int:
    """Run the command line; Ctrl-C ends it from here on, where Python would print a traceback of its imports."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # else the shell has it ignored
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from busso.command import commands

    return commands.main()


if __name__ == "__main__":
    sys.exit(main())
