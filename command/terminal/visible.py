"""Text from files on a terminal: control characters are shown instead of executed."""

import logging
import re
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout
from typing import Any

from busso.command.terminal.streams import ErrorStream, OutputStream

# Control characters except tab and newline, with ESC and the C1 set; marks that change the text direction or end a line
# in some programs; surrogates, which no encoding has.
_COMMANDS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def visible(text: str) -> str:
    r"""Escape each character that would control a terminal: ESC becomes `\x1b`."""
    return _COMMANDS.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def one_line(text: str) -> str:
    """Escape newlines too, so that text from a file cannot add a line."""
    return visible(text).replace("\n", "\\n")


class VisibleStream:
    """Text stream that escapes such characters. Rich, whose colours need them, writes to the wrapped stream."""

    def __init__(self, stream: Any) -> None:
        self.rich_proxied_file = stream

    def write(self, text: str) -> int:
        """Write the escaped text."""
        self.rich_proxied_file.write(visible(text))
        return len(text)

    def writelines(self, lines: Iterator[str]) -> None:
        """Write all lines."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.rich_proxied_file, name)


class VisibleFormatter(logging.Formatter):
    """Log formatter that escapes control characters, since logs are read on terminals."""

    def format(self, record: logging.LogRecord) -> str:
        return visible(super().format(record))


@contextmanager
def visible_output() -> Iterator[None]:
    """Escape everything printed or logged to the screen in this context; standard error never fails."""
    streams = {id(each): VisibleStream(OutputStream(each)) for each in (sys.stdout, sys.stderr) if _is_bare(each)}
    if id(sys.stderr) in streams:
        streams[id(sys.stderr)] = VisibleStream(ErrorStream(sys.stderr))
    handlers = [each for each in logging.getLogger().handlers if type(each) is logging.StreamHandler]
    with ExitStack() as stack:
        for stream, redirect in ((sys.stdout, redirect_stdout), (sys.stderr, redirect_stderr)):
            if id(stream) in streams:
                stack.enter_context(redirect(streams[id(stream)]))
        for handler in handlers:
            if id(handler.stream) in streams:
                stack.callback(handler.setStream, handler.stream)
                handler.setStream(streams[id(handler.stream)])
        yield


def _is_bare(stream: object) -> bool:
    return stream is not None and not isinstance(stream, VisibleStream)
