"""The settings of a run, as dataclasses that are checked once."""
