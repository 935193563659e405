"""Menu by keys and mouse: the chosen game starts, and impossible choices give one line."""

import itertools
import signal
from pathlib import Path

import pytest
from textual.pilot import Pilot
from textual.widgets import Input, OptionList, Static

from busso.command.conf_folder import own_games
from busso.command.settings.compose import compose
from busso.play.app.application import TableApp
from busso.play.app.menu import ChooserScreen, Form, SavesList
from busso.play.app.table import TableScreen
from busso.play.app.watch import WatchScreen
from busso.play.app.widgets.help import HelpScreen
from busso.play.language import LANGUAGES, texts_of
from busso.play.table.settings import PlaySettings
from tests.limits import seconds
from tests.play.app.pilots import LARGE, SMALL, choices_of, on_screen, seated, text_of, wait
from tests.play.conftest import Piped
from tests.play.terminals import Terminal

ENGLISH, ITALIAN = texts_of("en"), texts_of("it")


def in_menu(*overrides: str) -> TableApp:
    """Open the menu that `busso play` shows at a terminal, given options on how, but not what, to play."""
    return TableApp(compose(PlaySettings, "play", ["pace=0", *overrides]))


async def ready(pilot: Pilot[int], *keys: str) -> Form:
    """Press keys; return the settings on the right once they are shown."""
    app = pilot.app
    await pilot.press(*keys)
    await wait(pilot, "the menu", lambda: app.screen is app.menu and len(choices_of(app)) == 4)
    return app.menu.query_one(Form)


async def at(pilot: Pilot[int], key: str, *then: str) -> None:
    """Go to a row by keys, and press others there."""
    form = await ready(pilot)
    form.focus()
    await pilot.press("home")
    while form.get_option_at_index(form.highlighted or 0).id != key:
        await pilot.press("down")
    await pilot.press(*then)


async def click_line(pilot: Pilot[int], text: str) -> None:
    """Click on a text."""
    for y, line in enumerate(text_of(pilot.app).splitlines()):
        if text in line:
            await pilot.click(offset=(line.index(text), y))
            await pilot.pause()
            return
    raise AssertionError(f"nowhere on the screen: {text}\n{text_of(pilot.app)}")


@on_screen(opened=in_menu)
async def test_settings_by_keys(pilot: Pilot[int]) -> None:
    form = await ready(pilot)
    await pilot.press("down", "down", "down", "right")
    assert form.has_focus
    await pilot.press("right", "enter")
    assert isinstance(pilot.app.screen, ChooserScreen)
    await pilot.press("6", ".", "6", "enter")  # typing moves the focus to the input
    said = text_of(pilot.app)
    assert "✗ game.limit: expected 0.5 to 7.5 in steps of 0.5, not 6.6" in said and "5.5" in said
    await pilot.press("enter", "down", "enter")
    assert "✗" not in text_of(pilot.app) and "6.0" in text_of(pilot.app)
    await at(pilot, "seed", "enter", "4", "2", "enter")
    await at(pilot, "record", "enter", *"my games.jsonl", "enter")
    await at(pilot, "game.limit")
    table = await seated(pilot, "enter", "escape", "p")
    assert table.table.setup.seed == 42 and table.table.game.options.limit == 6.0
    assert Path("my games.jsonl").exists()


@on_screen(opened=in_menu)
async def test_a_table_by_mouse_alone(pilot: Pilot[int]) -> None:
    await ready(pilot)
    await click_line(pilot, "Sette e mezzo")
    assert "Opponent draws to" in text_of(pilot.app) and not isinstance(pilot.app.screen, TableScreen)
    await click_line(pilot, "Opponent draws to")
    await click_line(pilot, "4.5")
    await click_line(pilot, "Seed")
    await click_line(pilot, "Esc back")
    for focused in ("entries", "form"):
        await click_line(pilot, "Tab settings")
        assert pilot.app.focused is not None and pilot.app.focused.id == focused
    await click_line(pilot, "Play (p)")
    table = await seated(pilot)
    assert table.table.game.options.limit == 4.5
    await click_line(pilot, "q leave")
    await ready(pilot)
    await click_line(pilot, "Saved tables")
    await click_line(pilot, "saves/sette_mezzo")
    again = await seated(pilot)
    assert again is not table and again.table.setup.seed == table.table.setup.seed


@on_screen(opened=in_menu)
async def test_a_row_of_two_changes_at_once_and_opponents_apart_get_rows(pilot: Pilot[int]) -> None:
    await ready(pilot)
    await at(pilot, "game.accusi", "enter")
    assert pilot.app.screen is pilot.app.menu and choices_of(pilot.app)["tressette"].row("game.accusi").value == "true"
    await at(pilot, "opponents")
    await pilot.press("left", "left")  # past the champion, which comes first, to the end
    assert "each seat apart" in text_of(pilot.app)
    await at(pilot, "seat.3", "enter", "end", "enter")
    await at(pilot, "match", "right")
    assert "a second person" in text_of(pilot.app)
    chosen = choices_of(pilot.app)["tressette"].overrides()
    assert chosen == ["game=tressette", "game.accusi=true", "opponents=['greedy','human']", "match=11"]


@on_screen(opened=in_menu)
async def test_saved_tables_and_a_broken_one(pilot: Pilot[int]) -> None:
    await ready(pilot)
    await pilot.press("s")
    assert "No saved tables." in text_of(pilot.app)
    table = await seated(pilot, "escape", "home", "down", "down", "down", "enter")
    await ready(pilot, "q")
    Path("saves/broken.json").write_text("{")
    await pilot.press("s", "escape", "home", "p")
    (await seated(pilot)).session.path = Path("saves/other.json")
    await ready(pilot, "q")
    saves = pilot.app.menu.query_one(SavesList)
    await wait(pilot, "all saves", lambda: len(saves.tables) == 3)
    await pilot.press("s", "home")
    assert "Tressette · you, greedy, greedy, greedy" in text_of(pilot.app)
    await pilot.press("down", "enter")
    said = text_of(pilot.app)
    assert "✗ saves/broken.json cannot be used" in said and "not JSON; nothing was changed" in said
    await pilot.press("down", "enter")
    assert (await seated(pilot)).table.setup.seed == table.table.setup.seed
    assert Path("saves/broken.json").read_text() == "{"


@pytest.mark.parametrize(("spec", "says"), [("nobody", "opponents: nobody"), ("'[", "'[")])
@on_screen(opened=in_menu)
async def test_a_bad_player_is_one_line_and_everything_stays(pilot: Pilot[int], spec: str, says: str) -> None:
    await ready(pilot)
    await at(pilot, "partner", "enter")
    pilot.app.screen.query_one(Input).value = spec
    pilot.app.screen.query_one(Input).focus()
    await pilot.press("enter", "p")
    await wait(pilot, "the reason", lambda: "✗" in text_of(pilot.app))
    await ready(pilot)
    assert says in text_of(pilot.app) and choices_of(pilot.app)["tressette"].row("partner").value == spec


@on_screen("game=spike opponents=[cautious,cautious]")
async def test_a_bad_command_line_ends_in_the_menu_with_its_line(pilot: Pilot[int]) -> None:
    await wait(pilot, "the reason", lambda: "✗" in text_of(pilot.app))
    assert pilot.app.screen is pilot.app.menu and "opponents: expected 1, not 2" in text_of(pilot.app)


@on_screen(opened=in_menu)
async def test_the_language_changes_at_once_and_everything_is_kept(pilot: Pilot[int]) -> None:
    await ready(pilot)
    await pilot.press("down")
    await at(pilot, "game.seats", "right", "l")
    await wait(pilot, "Italian", lambda: ITALIAN["menu.play"] in text_of(pilot.app))
    said = text_of(pilot.app)
    assert "Corellian Spike" in said and "Posti               3" in said and ENGLISH["menu.play"] not in said
    await pilot.press("question_mark")
    assert ITALIAN["help_screen.keys"] in text_of(pilot.app)
    await seated(pilot, "escape", "home", "down", "down", "down", "enter")
    assert "Tocca a te" in text_of(pilot.app)
    await ready(pilot, "q")
    await pilot.press("l")
    await wait(pilot, "English", lambda: ENGLISH["menu.play"] in text_of(pilot.app))


@on_screen("game=sette_mezzo seed=3")
async def test_a_terminal_that_is_too_small_is_one_line_and_goes_on_when_it_grows(pilot: Pilot[int]) -> None:
    table = await seated(pilot)
    for width, height in ((79, 24), (80, 23), (30, 5)):
        await pilot.resize_terminal(width, height)
        said = " ".join(text_of(pilot.app).split())
        assert said == ENGLISH["app.too_small"].format(columns=width, rows=height, width=80, height=24)
        await pilot.press("1", "2", "q")  # the input is not visible
        await pilot.click(offset=(2, 2))
        assert pilot.app.screen is table and not table.table.hand.moves
    await pilot.resize_terminal(*SMALL)
    assert "Your turn" in text_of(pilot.app) and "terminal" not in text_of(pilot.app)
    await pilot.press("question_mark")
    await pilot.resize_terminal(79, 24)
    assert "79 x 24" in text_of(pilot.app)
    await pilot.resize_terminal(*LARGE)
    assert isinstance(pilot.app.screen, HelpScreen) and "how it is played" in text_of(pilot.app)
    await pilot.resize_terminal(79, 24)
    await pilot.press("ctrl+q")
    await wait(pilot, "the end", lambda: pilot.app.return_code == 0)
    assert pilot.app.last_words == "Saved: resume with busso play save=saves/sette_mezzo-3.json"


@pytest.mark.slow
@on_screen(opened=in_menu)
async def test_looking_on_from_the_menu(pilot: Pilot[int]) -> None:
    await ready(pilot)
    await pilot.press("down", "down", "down")
    await at(pilot, "game.limit", "right", "a")
    await wait(pilot, "a game", lambda: isinstance(pilot.app.screen, WatchScreen))
    assert pilot.app.screen.table.game.options.limit == 5.5
    await pilot.press("question_mark")
    assert "a move back, forward" in text_of(pilot.app)
    await ready(pilot, "escape", "q")
    Path("bad.jsonl").write_text("{}\n")
    await click_line(pilot, "A recorded game")
    await click_line(pilot, "Play (p)")
    await pilot.press(*"bad.jsonl", "enter")
    await wait(pilot, "the reason", lambda: "✗" in text_of(pilot.app))
    assert "bad.jsonl" in text_of(pilot.app) and pilot.app.screen is pilot.app.menu


@pytest.mark.parametrize("lang", LANGUAGES)
@on_screen("lang={lang}", opened=in_menu)
async def test_nothing_is_cut_off_in_the_menu(pilot: Pilot[int], lang: str) -> None:
    form, texts = await ready(pilot), texts_of(lang)
    entries = pilot.app.menu.query_one("#entries", OptionList)
    for width, game in itertools.product((80, 109, 110, 120, 153, 154), own_games()):
        await pilot.resize_terminal(width, 24)
        entries.highlighted = entries.get_option_index(game)
        await pilot.pause()
        said = text_of(pilot.app)
        assert form.options
        for option in form.options:
            assert texts[f"menu.row.{str(option.id).removeprefix('game.')}"] in said, (width, game)
            assert option.prompt.plain in said, (width, game)
        assert texts["menu.play"] in said and f"q {texts['menu_key.end']}" in said
        assert form.max_scroll_y == 0


@on_screen(opened=in_menu, size=(160, 24))
async def test_rules_that_are_longer_than_the_menu_scroll(pilot: Pilot[int]) -> None:
    await ready(pilot)
    reading = pilot.app.menu.query_one("#reading")
    assert reading.max_scroll_y > 0
    reading.scroll_end(animate=False)
    await pilot.pause()
    assert pilot.app.menu.query_one("#rules", Static).region.bottom <= reading.region.bottom


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
