"""Version of busso."""

__version__ = "1.1.0"  # the only place: pyproject.toml and `busso --version` read it
