"""Signal handling that ends the table like Ctrl-C, even just before a blocking read."""

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
    """Raise KeyboardInterrupt in the main thread at the first of these signals, then ignore them all.

    Python runs handlers only between bytecodes. A signal that comes after the last of these before a blocking read is
    recorded, and the read blocks all the same, until a key is pressed. So a thread receives each signal through the
    wakeup descriptor and resends it to the main thread until the handler has run. Call it in the main thread; the
    context restores all handlers at its end.
    """
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    heard, main = threading.Event(), threading.get_ident()

    def interrupt(number: int, frame: FrameType | None) -> None:
        heard.set()
        for each in numbers:
            signal.signal(each, signal.SIG_IGN)  # saving must not be interrupted
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
        heard.set()  # stops the resending
        for number, handler in handlers.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(descriptor)
        os.write(writer, _NO_SIGNAL)
        listener.join()
        os.close(reader)
        os.close(writer)
