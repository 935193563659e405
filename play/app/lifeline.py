"""`python lifeline.py SECONDS COMMAND...`: run a page's table, and kill it if it outlives its server.

Standard input is a pipe from the server. When its other end is closed, as the kernel does for a killed server, the
table has some seconds to save. This is a separate process, so that a table that hangs cannot block it. It starts
without Python's site packages, in a few milliseconds.
"""

import os
import select
import signal
import subprocess
import sys
import threading
import time


def main(seconds: float, command: list[str]) -> int:
    """Run the command and return its exit code."""
    table = subprocess.Popen(command)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:  # ignored under nohup
            signal.signal(number, lambda number, _: table.send_signal(number))
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for output in (1, 2):  # only the table holds them open
        os.dup2(nowhere, output)
    threading.Thread(target=_end, args=(table, seconds), daemon=True).start()
    return table.wait()


def _end(table: subprocess.Popen[bytes], seconds: float) -> None:
    """Kill the table `seconds` after its server has closed the pipe."""
    closed = select.poll()
    closed.register(0, select.POLLHUP)  # the input is for the table
    while not closed.poll(1000):  # on macOS one call may miss the end behind unread input
        pass
    time.sleep(seconds)
    table.kill()


if __name__ == "__main__":
    sys.exit(main(float(sys.argv[1]), sys.argv[2:]))
