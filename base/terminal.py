"""Text streams of a process: they may be closed, full, or lack characters, and show control characters of files.

`literal` and `code` make such text safe in Markdown that is rendered elsewhere: it loads nothing and has no markup.
"""

import errno
import logging
import os
import re
import select
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout, suppress
from types import FrameType
from typing import Any

# Control characters except tab and newline, with ESC and the C1 set; marks that change the text direction or end a line
# in some programs; surrogates, which no encoding has.
_COMMANDS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")

# Code in single backticks within one line is kept. All other backticks are escaped, because renderers pair them across
# lines. Escaping one bracket disables a link, an image, a link definition or a tag.
_MARKUP = re.compile(r"(\\.|(?<!`)`[^`\n]+`(?!`))|`+|\][(\[:]|<(?=[A-Za-z/!?])")

_PARTS = re.compile(r"[^/:, ]+[/:, ]*|[/:, ]+")  # of a player's or a run's name

_LOUD = ("error", "warning", "interrupted")
OUTPUT = "standard output"  # as the file of an error


class OutputStream:
    """Standard output: unencodable characters become `?`, and a closed stream raises OSError, as a full one does."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Write the text. Raises OSError."""
        with self._as_os_error():
            try:
                self._stream.write(text)
            except UnicodeEncodeError as error:
                encoding = getattr(self._stream, "encoding", None) or error.encoding
                self._stream.write(text.encode(encoding, "replace").decode(encoding))
        return len(text)

    def flush(self) -> None:
        """Flush, if supported. Raises OSError."""
        with self._as_os_error():
            getattr(self._stream, "flush", bool)()

    def isatty(self) -> bool:
        """Return whether this is a terminal; an object that replaced a standard stream may lack the method."""
        with suppress(ValueError):
            return bool(getattr(self._stream, "isatty", bool)())
        return False

    @contextmanager
    def _as_os_error(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise OSError(error.errno, error.strerror or str(error), OUTPUT) from None
        except ValueError as error:  # it is closed
            raise OSError(errno.EBADF, str(error), OUTPUT) from None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


class ErrorStream(OutputStream):
    """Standard error: when it cannot be written, discard the rest, since nowhere is left to report it."""

    @contextmanager
    def _as_os_error(self) -> Iterator[None]:
        try:
            yield
        except (OSError, ValueError):
            with suppress(OSError, AttributeError, ValueError):
                discard_output(self._stream.fileno())


class QuietStream:
    """Standard error of a quiet command: only lines that begin with error or warning reach the stream, and the log."""

    def __init__(self, stream: Any) -> None:
        self.loud, self._passes = stream, False

    def write(self, text: str) -> int:
        """Write the text if it is an error or a warning, or ends the line of one."""
        self._passes = text.startswith(_LOUD) or (self._passes and text == "\n")
        if self._passes:
            self.loud.write(text)
        return len(text)

    def isatty(self) -> bool:
        """Return False, so that nothing draws a bar."""
        return False

    def __getattr__(self, name: str) -> Any:
        return getattr(self.loud, name)


def end_interrupted(*_: object) -> None:
    """End the process at Ctrl-C, as a signal handler while modules are imported, where an exception may get lost."""
    os.write(2, b"interrupted\n")
    os._exit(130)


def interrupt(number: int, frame: FrameType | None) -> None:
    """Raise KeyboardInterrupt at Ctrl-C, as a signal handler of a command; end the process during a late import."""
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            end_interrupted()
        frame = frame.f_back
    raise KeyboardInterrupt


def is_gone(descriptor: int) -> bool:
    """Return whether nothing can be written any more: a pipe lost its reader, or a terminal was closed."""
    asked = select.poll()
    asked.register(descriptor, select.POLLHUP)  # macOS reports it only if requested
    return bool(asked.poll(0))


def discard_output(descriptor: int) -> None:
    """Redirect a descriptor to /dev/null."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    if nowhere != descriptor:
        os.dup2(nowhere, descriptor)
        os.close(nowhere)


def open_standard_files() -> None:
    """Open closed standard streams on /dev/null: a later file would get their number, and the output with it."""
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            discard_output(descriptor)
    sys.stdout = sys.stdout or open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115 - as Python opens it
    sys.stderr = sys.stderr or open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115


def visible(text: str) -> str:
    r"""Escape each character that would control a terminal: ESC becomes `\x1b`."""
    return _COMMANDS.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def one_line(text: str) -> str:
    """Escape newlines too, so that text from a file cannot add a line."""
    return visible(text).replace("\n", "\\n")


def literal(text: str) -> str:
    """Return prose without links, images and tags; code in backticks and emphasis stay."""
    return _MARKUP.sub(lambda found: found[1] or _escaped(found[0]), visible(text))


def _escaped(markup: str) -> str:
    if markup[0] == "`":
        return "\\`" * len(markup)
    return f"{markup[:-1]}\\{markup[-1]}"


def code(text: object) -> str:
    """Return any text as one line in backticks."""
    return f"`{one_line(str(text)).replace('`', chr(39))}`"


def broken(name: str, width: int) -> str:
    """Break a name into lines of at most `width` characters, only between its parts; a longer part stays whole."""
    lines = [""]
    for part in _PARTS.findall(one_line(name)):
        if lines[-1] and len(lines[-1]) + len(part) > width:
            lines.append("")
        lines[-1] += part
    return "\n".join(lines)


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


class ScreenHandler(logging.StreamHandler):  # type: ignore[type-arg]
    """Log handler for standard error as it is at each line: a bar takes its place, to print lines above itself."""

    @property
    def stream(self) -> Any:
        """Standard error now, also of a quiet command."""
        return getattr(sys.stderr, "loud", sys.stderr)

    @stream.setter
    def stream(self, _: Any) -> None:
        """Ignore the stream of `StreamHandler`."""


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
