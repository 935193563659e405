"""A signal that ends the table like Ctrl-C, however close to a read it comes."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import FrameType

_AGAIN_SECONDS = 0.1
_NO_SIGNAL = b"\0"


@contextmanager
def interrupt_at(numbers: Sequence[signal.Signals]) -> Iterator[None]:
    """Let the first of these signals raise KeyboardInterrupt in the main thread; from then on all of them are ignored.

    Python runs a handler between two steps of its own. A signal that comes after the last of them before a read is
    noted, and the read waits as if there had been none: for ever, without a key. So a thread hears of each signal by
    the wakeup descriptor and sends it to the main thread again until the handler has run. For the main thread; at the
    end of the context everything is as it was before.
    """
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    heard, main = threading.Event(), threading.get_ident()

    def interrupt(number: int, frame: FrameType | None) -> None:
        heard.set()
        for each in numbers:
            signal.signal(each, signal.SIG_IGN)  # what is being saved is not to be torn
        raise KeyboardInterrupt

    def insist() -> None:
        while not heard.is_set():
            (number,) = os.read(reader, 1)
            while number in numbers and not heard.wait(_AGAIN_SECONDS):
                signal.pthread_kill(main, number)

    handlers = {number: signal.signal(number, interrupt) for number in numbers}
    descriptor = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    listener = threading.Thread(target=insist, name="signals", daemon=True)
    listener.start()
    try:
        yield
    finally:
        heard.set()  # nothing is sent again from here on
        for number, handler in handlers.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(descriptor)
        os.write(writer, _NO_SIGNAL)
        listener.join()
        os.close(reader)
        os.close(writer)
