"""Where the settings of the commands lie."""

from __future__ import annotations

from pathlib import Path

_INSTALLED = Path(__file__).resolve().parent / "conf"  # where a wheel puts it
CONF = _INSTALLED if _INSTALLED.is_dir() else _INSTALLED.parent.parent / "conf"
