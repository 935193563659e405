"""`busso play`: play at a table against rule players, trained agents or each other.

`busso play ui=plain game=tressette opponents=greedy seed=7 record=games.jsonl` plays a hand of Tressette in lines
of text. docs/howto/play.md lists all commands that you can type.

example:
  busso play game=tressette opponents=champion
"""

from __future__ import annotations

import io
import os
import signal
import sys
from typing import TYPE_CHECKING

from busso.base.system import heard
from busso.command.app import settings_command, typed
from busso.command.settings.checks import SettingsError
from busso.command.settings.quoting import given as given_by
from busso.play.language import Language
from busso.play.table.settings import APP, AUTO, PLAIN, Given, PlaySettings

if TYPE_CHECKING:
    from busso.cards.game import Game

_BROKEN_PIPE = 128 + 13  # exit code in a shell of a program ended by SIGPIPE

_NO_SCREEN = "dumb"  # TERM of a terminal that can only print lines


@settings_command(PlaySettings, "play", default_game="tressette")
def main(settings: PlaySettings) -> int:
    """Run the command and return the exit code."""
    given = given_by(typed())
    if settings.serve:
        from busso.play.web.serve import serve

        serve(settings, given)
    if _ui(settings) == APP:
        from busso.play.app.application import run_app

        return run_app(settings, given)
    if settings.watch is not None:
        raise SettingsError("watch", "ui=plain cannot show games", "use ui=app in a terminal, or serve=true")
    from busso.play.plain import interrupt_at

    try:
        with interrupt_at(heard((signal.SIGTERM, signal.SIGHUP))):  # saves the game, as Ctrl-C does
            return _sit_down(settings, given)
    except BrokenPipeError:
        # The reader of the output is gone: discard the rest, or Python would complain when flushing it.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _BROKEN_PIPE


def _sit_down(settings: PlaySettings, given: Given) -> int:
    from busso.play.plain import PlainTable
    from busso.play.table.session import (
        open_session,  # imports Numba, for which the application's menu does not wait
    )

    language = Language(settings.lang)
    if reconfigure := getattr(sys.stdin, "reconfigure", None):
        reconfigure(errors="replace")  # a terminal may lack some of the characters
    session = open_session(settings, given, lambda game, seed: _welcome(language, game, seed))
    lines = sys.stdin or io.StringIO()  # None if closed
    return PlainTable(session, language, settings.games, lines, sys.stdout).run()


def _ui(settings: PlaySettings) -> str:
    """Return the chosen interface; `auto` is the application if both ends are a capable terminal."""
    if settings.ui != AUTO:
        return settings.ui
    at_terminal = all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stdout))
    return APP if at_terminal and os.environ.get("TERM", _NO_SCREEN) != _NO_SCREEN else PLAIN


def _welcome(language: Language, game: Game, seed: int) -> None:
    """Print the first line before compiling, which takes seconds."""
    print(language.say("plain.welcome", game=language.game(game.name), seed=seed), flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
