"""The screen on which a game is looked on at, made of the one on which it is played."""

from __future__ import annotations

import inspect
from pathlib import Path
from types import new_class
from typing import cast

from play.app.screens import screen_for
from play.app.spectate.watch import Watching
from play.app.table.table import TableScreen
from play.language import Language
from play.spectate.watching import Watch


def watch_screen(watch: Watch, language: Language) -> TableScreen:
    """The screen on which these games are looked on at: that of the game, with `Watching` before it."""
    base = screen_for(watch.table.game)
    styles = [base.CSS_PATH] if isinstance(base.CSS_PATH, str | Path) else cast("list[str]", base.CSS_PATH or [])
    folder = Path(inspect.getfile(base)).parent
    body = {
        "BINDINGS": Watching.BINDINGS,
        "CSS_PATH": [*(folder / str(style) for style in styles), Path(__file__).with_name("watch.tcss")],
        "AUTO_FOCUS": "",
        "__module__": __name__,
    }
    # The keys of the game would play; those of the application remain.
    screen = new_class("WatchScreen", (Watching, base), {"inherit_bindings": False}, lambda names: names.update(body))
    return cast(TableScreen, screen(watch, language))
