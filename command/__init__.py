"""Shared by all commands of busso: settings from conf/ and the command line, and errors as one line."""

__version__ = "0.4.0"  # here alone: pyproject.toml and `busso --version` read it
