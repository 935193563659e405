"""Corellian Spike on its screen: whole games by keys and mouse, and visible and hidden information."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from textual.pilot import Pilot
from textual.widgets import Static

from busso.evaluate.replay import replay_file
from busso.play.app.screens.spike import GameScreen, LogScreen
from busso.play.app.table.table import TableScreen
from busso.play.views import view
from busso.play.views.spike_board import signed
from busso.spike.cards import DISCARD
from tests.play.app.pilots import LARGE, SMALL, application, asked, driven, seated, text_of, wait
from tests.play.app.spike_people import (
    Do,
    by_digit,
    by_letter,
    by_mouse,
    look_at_the_table,
    play_through,
    settled,
    staying_in,
)
from tests.play.test_views import Reshuffled
from tests.spike.hidden import reshuffle_hidden


@pytest.mark.parametrize(
    ("seats", "hands", "size", "do"),
    [(2, 3, SMALL, by_digit), (4, 1, LARGE, by_mouse), (8, 1, SMALL, by_letter)],
)
def test_whole_games(
    seats: int, hands: int, size: tuple[int, int], do: Callable[[Pilot[int]], Do], tmp_path: Path
) -> None:
    record, held = tmp_path / "games.jsonl", []

    def look(table: TableScreen, text: str) -> None:
        look_at_the_table(table, text)
        held.append(bool(table.waits))

    async def script(pilot: Pilot[int]) -> None:
        table = await seated(pilot)
        assert isinstance(table, GameScreen)
        await play_through(pilot, table, do(pilot), look)
        assert "Enter deals another" in text_of(pilot.app)
        await pilot.press("enter")
        await settled(pilot, table)
        assert table.table.score.games == 1 and "Hand 1 of" in text_of(pilot.app)

    given = (f"seats={seats}", f"hands={hands}", "seed=4", f"record={record}", "opponents=cautious")
    driven(application("game=spike", *given), script, size)
    [line] = record.read_text().splitlines()
    [result] = replay_file(record)
    played = json.loads(line).get("hands", [line])  # a single-hand game is that hand
    assert len(played) == sum(held) + 1 and len(result["credits"]) == seats


def test_hidden_cards_are_not_on_the_screen() -> None:
    random, compared = np.random.default_rng(2), []

    async def script(pilot: Pilot[int]) -> None:
        table = await seated(pilot)
        while not table.table.hand.over:
            hand, text = table.table.hand, text_of(pilot.app)
            other = Reshuffled(hand, 0, reshuffle_hidden, random)
            table.table.hand = other
            table.refresh_table()
            await pilot.pause()
            assert text_of(pilot.app) == text
            compared.append((other.state != hand.state).any())
            table.table.hand = hand
            table.refresh_table()
            await pilot.press("enter" if table.waits else staying_in(table))
            await settled(pilot, table)

    driven(application("game=spike", "seats=4", "hands=1", "seed=12"), script)
    assert sum(compared) > 6


def test_an_end_stays_until_enter_and_nothing_is_played_meanwhile() -> None:
    async def script(pilot: Pilot[int]) -> None:
        table = await seated(pilot)
        await pilot.press("f")
        await settled(pilot, table)
        assert table.waits and "All others have folded." in text_of(pilot.app)
        assert "Hand 1 is over. Press Enter for the next one." in text_of(pilot.app)
        moves = len(table.table.hand.moves)
        await pilot.press("1", "m", "u", "t", "o", "b")
        assert table.waits and len(table.table.hand.moves) == moves and not table.query(".action")
        await pilot.press("enter")
        await settled(pilot, table)
        assert not table.waits and "Hand 2 of 10" in text_of(pilot.app) and table.query(".action")

    driven(application("game=spike", "seed=4"), script)


def test_undo_and_log() -> None:
    async def script(pilot: Pilot[int]) -> None:
        table = await seated(pilot)
        before = text_of(pilot.app).splitlines()[:-6]
        await pilot.press("g")
        await wait(pilot, "the log", lambda: isinstance(pilot.app.screen, LogScreen))
        assert "Nothing has happened yet." in text_of(pilot.app)
        await pilot.press("g", "m")
        await settled(pilot, table)
        assert text_of(pilot.app).splitlines()[:-6] != before
        await pilot.press("u")
        await settled(pilot, table)
        assert text_of(pilot.app).splitlines()[:-6] == before and "Undone." in text_of(pilot.app)
        await pilot.press("m")
        await settled(pilot, table)
        await pilot.press("g")
        await wait(pilot, "the log", lambda: isinstance(pilot.app.screen, LogScreen))
        assert "Seat 0 stays without paying." in text_of(pilot.app)
        await pilot.press("q")
        await wait(pilot, "the table", lambda: pilot.app.screen is table)

    driven(application("game=spike", "seats=3", "hands=2", "seed=5"), script)


def test_the_second_person_at_the_table_does_not_see_the_cards_of_the_first() -> None:
    async def script(pilot: Pilot[int]) -> None:
        table = await seated(pilot)
        await pilot.press("t")
        await settled(pilot, table)
        await pilot.press("m")
        await wait(pilot, "the other person", lambda: table.viewer == 1 and table.is_quiet)
        text = text_of(pilot.app)
        assert "Seat 1 is to move" in text and "Your cards" not in text and "Worth" not in text
        assert not table.query(".action")
        await pilot.press("m", "enter")
        await settled(pilot, table)
        assert table.may_act and "▶ 1 you" in text_of(pilot.app)
        own = " ".join(f"│{signed(card):^4}│" for card in view(table.table.hand, 1).own).replace("│ │", "││")
        assert own in text_of(pilot.app) and len(table.table.hand.moves) == 1

    driven(application("game=spike", "opponents=[human]", "seed=3", "hint=monte_carlo:samples:20"), script, (120, 40))


def test_the_longest_words_fit_at_80_columns() -> None:
    """The longest possible: eight seats, two lines of discards, a bought card, values and odds."""

    async def script(pilot: Pilot[int]) -> None:
        table = await seated(pilot)
        while DISCARD not in table.table.hand.legal or len(view(table.table.hand, 0).dice) < 2:
            await pilot.press("enter" if table.waits else staying_in(table))
            await settled(pilot, table)
        await pilot.press("t")
        await settled(pilot, table)
        await pilot.press("o")
        await settled(pilot, table)
        table.table.hand.state["discards"] = np.uint64((1 << 62) - 1)
        table.refresh_table()
        await pilot.pause()
        lines = text_of(pilot.app).splitlines()
        assert len(lines) == 24 and lines[-1].endswith("q esci") and all(len(line) <= 80 for line in lines)
        for letter in "dslh":
            assert f"({letter})" in "\n".join(lines[-5:])
        own = table.query_one("#own", Static)
        board = table.query_one("#board")
        assert own.region.bottom <= board.region.bottom and own.region.height == 4
        for button in table.query(".action"):
            assert button.region.right <= 80 and button.region.height == 3

    driven(application("game=spike", "seats=8", "seed=3", "lang=it", "hint=monte_carlo:samples:20"), script)


def test_who_takes_a_move_back_leaves_nothing_on_the_buttons_for_the_person_before() -> None:
    """The table is then covered, and buttons would reveal the coach's values for the other person's cards."""

    async def script(pilot: Pilot[int]) -> None:
        table = await seated(pilot)
        await pilot.press("1")
        await wait(pilot, "the next person", lambda: table.is_quiet)
        await pilot.press("enter")
        await asked(pilot)
        assert list(table.query(".action"))
        await pilot.press("u")
        await wait(pilot, "the cover", lambda: "let no one else look" in text_of(pilot.app))
        assert not list(table.query(".action"))

    driven(application("game=spike", "opponents=[human]", "seed=3"), script)
