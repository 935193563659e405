"""Shared parts of all commands: settings from conf/ and the command line, and one-line errors."""

__version__ = "1.0.0"  # the only place: pyproject.toml and `busso --version` read it
