"""`python leash.py LIFELINE COMMAND...`: runs a program; when busso ends, it ends the program and all its processes.

LIFELINE is the number of a pipe whose other end busso holds. The kernel closes that end however busso ends, by
`kill -9` too. This process starts without Python's site packages, in a few milliseconds.
"""

import os
import signal
import sys


def main(lifeline: int, command: list[str]) -> None:
    """Run the command, and kill its process group, which is this process's own, when the lifeline is closed."""
    os.set_inheritable(lifeline, False)
    os.posix_spawnp(command[0], command, os.environ, setsigdef=[signal.SIGPIPE])  # which Python ignores
    nowhere = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1):  # the program's alone, so that its end is seen
        os.dup2(nowhere, number)
    os.read(lifeline, 1)
    os.killpg(0, signal.SIGKILL)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
