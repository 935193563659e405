"""`python lifeline.py SECONDS COMMAND...`: run the table of a page, and end it if it outlives its server.

Standard input is a pipe from the server. When the other end is closed, which the kernel does for a server that was
killed, the table has some seconds to save. This process waits beside the table, so a table that hangs cannot stop
it. It starts without Python's site packages, in a few milliseconds.
"""

import os
import select
import signal
import subprocess
import sys
import threading
import time


def main(seconds: float, command: list[str]) -> int:
    """Run the command; returns its exit code."""
    table = subprocess.Popen(command)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:  # as nohup has it
            signal.signal(number, lambda number, _: table.send_signal(number))
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for output in (1, 2):  # their end is the end of the table
        os.dup2(nowhere, output)
    threading.Thread(target=_end, args=(table, seconds), daemon=True).start()
    return table.wait()


def _end(table: subprocess.Popen[bytes], seconds: float) -> None:
    """End the table so long after its server has closed the pipe."""
    closed = select.poll()
    closed.register(0, select.POLLHUP)  # what comes in is for the table
    while not closed.poll(1000):  # on macOS one call may miss the end behind unread input
        pass
    time.sleep(seconds)
    table.kill()


if __name__ == "__main__":
    sys.exit(main(float(sys.argv[1]), sys.argv[2:]))
