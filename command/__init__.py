"""Shared by all commands of busso: settings from conf/ and the command line, and errors as one line."""
