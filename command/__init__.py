"""Shared by all commands of busso: settings from conf/ and the command line, and errors as one line."""

from busso.one_name import require

require(__name__)

__version__ = "0.4.0"  # here alone: pyproject.toml and `busso --version` read it
