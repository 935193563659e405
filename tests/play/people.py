"""Tables for tests, and simulated people who answer when asked, as a pipe would."""

import io
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from busso.command.settings.compose import compose
from busso.command.settings.game import with_game_options
from busso.command.settings.quoting import given as given_by
from busso.evaluate.replay import replay_file
from busso.play.language import Language
from busso.play.plain import PlainTable
from busso.play.table.session import Session, open_session
from busso.play.table.settings import Given, PlaySettings
from busso.play.table.table import Table

ROOT = Path(__file__).parent.parent.parent
Answer = Callable[[Session], str]  # next line to type, "" at the end of the input


def composed(*overrides: str) -> tuple[PlaySettings, Given]:
    """Return the settings of `busso play` with these overrides, and the overrides by key."""
    chosen = with_game_options(overrides, "tressette", PlaySettings)
    return compose(PlaySettings, "play", chosen), given_by(chosen)


def sit_down(*overrides: str) -> Session:
    """Return the session that `busso play` would open."""
    return open_session(*composed(*overrides))


def talk(answer: Answer, *overrides: str) -> tuple[str, Session]:
    """Play in line mode to the end; return the output and the session."""
    session, out = sit_down(*overrides), io.StringIO()
    person = SimpleNamespace(readline=lambda: answer(session), isatty=lambda: False)
    options = dict(override.partition("=")[::2] for override in overrides)
    language = Language(options.get("lang", "en"))
    assert PlainTable(session, language, int(options.get("games", 1)), person, out).run() == 0
    return out.getvalue(), session


def lines(*typed: str) -> Answer:
    """Return an answer that types these lines and then ends."""
    left = iter(typed)
    return lambda session: next((f"{line}\n" for line in left), "")


def choice(table: Table) -> int:
    """Return a legal action that depends only on the position."""
    legal = table.hand.legal
    return legal[(7 * len(table.hand.moves) + len(table.hands)) % len(legal)]


def steady(session: Session) -> str:
    """Play every game by `choice`, and leave when it is over."""
    return "quit\n" if session.table.hand.over else session.table.game.action_text(choice(session.table)) + "\n"


def reply(table: Table) -> Table:
    """Let the players play until a person must decide or the hand ends."""
    while table.turn is not None and not table.person_to_move:
        table.reply()
    return table


def step(table: Table) -> None:
    """Let the seat to move play, a person by `choice`."""
    table.play(choice(table)) if table.person_to_move else table.reply()


def play_on(table: Table, decisions: int = 1_000) -> None:
    """Play by `choice` to the end of the game, or for this number of human decisions."""
    while decisions and not table.game_over:
        if table.hand.over:
            table.deal()
        else:
            decisions -= table.person_to_move
            step(table)


def replayed(path: Path) -> list[dict[str, Any]]:
    """Replay the games of a file, which have no errors."""
    found = list(replay_file(path))
    assert not [line for line in found if "error" in line]
    return found


COMMAND = (sys.executable, "-m", "busso.play")
ENVIRONMENT = os.environ | {"PYTHONPATH": str(ROOT)}


def start(folder: Path, arguments: Sequence[str], **streams: int) -> "subprocess.Popen[bytes]":
    """Start `busso play` in the folder."""
    return subprocess.Popen([*COMMAND, *arguments], cwd=folder, env=ENVIRONMENT, **streams)
