"""Shared by all commands of busso: settings from conf/ and the command line, and errors as one line."""

__version__ = "1.0.0.dev0"  # here alone: pyproject.toml and `busso --version` read it
