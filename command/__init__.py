"""Shared parts of all commands: settings from conf/ and the command line, and one-line errors."""
