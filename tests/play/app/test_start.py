"""`busso play` at a terminal: starts in the menu, exits cleanly, and keeps the game."""

import signal
from pathlib import Path

import pytest

from tests.limits import seconds
from tests.play.conftest import Piped
from tests.play.terminals import Terminal

RESUME = "Saved: resume with busso play save=saves/sette_mezzo-3.json"


def test_it_starts_in_the_menu_and_ends(tmp_path: Path) -> None:
    terminal = Terminal(tmp_path)
    terminal.wait_for("Corellian Spike")
    terminal.wait_for("as the opponents")
    terminal.press("q")
    assert terminal.end() == 0 and "Traceback" not in terminal.said
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_table_is_saved_and_the_last_line_says_how_to_go_on(number: int, tmp_path: Path) -> None:
    terminal = Terminal(tmp_path, "game=sette_mezzo", "seed=3")
    terminal.wait_for("Your turn")
    terminal.process.send_signal(number)
    assert terminal.end() == 0 and "Traceback" not in terminal.said
    assert terminal.said.rstrip().endswith(RESUME)
    assert [path.name for path in (tmp_path / "saves").iterdir()] == ["sette_mezzo-3.json"]


@pytest.mark.slow
def test_a_lost_connection_keeps_the_table(tmp_path: Path) -> None:
    terminal = Terminal(tmp_path, "game=sette_mezzo", "seed=3")
    terminal.wait_for("Your turn")
    terminal.hang_up()
    terminal.process.wait(seconds(30))
    assert [path.name for path in (tmp_path / "saves").iterdir()] == ["sette_mezzo-3.json"]


def test_a_terminal_of_lines_alone_gets_lines(tmp_path: Path) -> None:
    terminal = Terminal(tmp_path, "game=sette_mezzo", "seed=3", term="dumb")
    terminal.wait_for("Type ? or help for all commands.")
    terminal.wait_for("Your turn, seat 0:")
    terminal.press("quit\n")
    assert terminal.end() == 0 and "\x1b" not in terminal.said and RESUME in terminal.said


def test_a_pipe_gets_lines_and_the_application_says_that_it_needs_a_terminal(piped: Piped) -> None:
    assert piped("quit\n", "game=sette_mezzo", "seed=3")[1].startswith("busso: Sette e mezzo, seed 3.")
    said = "error: ui: app needs a terminal for input and output; use ui=plain for pipes\n"
    assert piped("", "ui=app") == (2, "", said)
