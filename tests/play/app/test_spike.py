"""Corellian Spike on its screen: whole games by keys and mouse, and visible and hidden information."""

import json
from pathlib import Path

import numpy as np
import pytest
from textual.pilot import Pilot
from textual.widgets import Static

from busso.evaluate.replay import replay_file
from busso.play.app.screens.spike import GameBoard, LogScreen
from busso.play.app.table import TableScreen
from busso.play.views import view
from busso.play.views.spike import SpikeView, endings
from busso.spike.cards import BUY, DISCARD, MATCH, SWAP_LOWER, signed
from tests.play.app.pilots import LARGE, SMALL, asked, on_screen, seated, text_of, wait
from tests.play.people import choice
from tests.play.test_views import Reshuffled
from tests.spike.hidden import reshuffle_hidden


async def settled(pilot: Pilot[int], table: TableScreen, *keys: str) -> None:
    """Press keys, and wait until a person can move, with buttons, or the end of a hand is shown."""

    def holds() -> bool:
        buttons = [button.name for button in table.query(".action")]
        return (table.may_act and buttons == list(map(str, table.table.hand.legal))) or (
            not buttons and (table.waits or (table.table.hand.over and table.is_quiet))
        )

    await pilot.press(*keys)
    await wait(pilot, "a turn", holds)


def staying_in(table: TableScreen) -> str:
    """Return the letter of the action that leads to the most cards and dice."""
    return GameBoard.LETTERS[next(action for action in (BUY, SWAP_LOWER, MATCH) if action in table.table.hand.legal)]


def rows_of(text: str) -> list[str]:
    """Return the lines of a screen without borders and with single spaces."""
    return [" ".join(line.replace("│", " ").split()) for line in text.splitlines()]


def look_at_the_table(table: TableScreen, text: str) -> None:
    """Check that all information needed to play is on the screen, uncut."""
    if table.waits or table.table.hand.over:
        look_at_the_end(table, text)
        return
    seen: SpikeView = view(table.table.hand, table.viewer)
    rows = rows_of(text)
    for seat, other in enumerate(seen.seats):
        name = "you" if seat == 0 else "cautious"
        row = next(row for row in rows if row.removeprefix("▶ ").startswith(f"{seat} {name} "))
        assert str(other.credits) in row.split() and (seat == seen.turn) == row.startswith("▶")
        assert ("folded" in row) == (not other.in_hand) and ("to move" in row) == (seat == seen.turn)
        assert other.spike is None or signed(other.spike) in row.split()
    assert f"Hand {seen.hand_number} of " in text and f"Pool {seen.pool} " in text and "Your turn, seat 0." in text
    cards = next(row for row in rows if "= " in row)
    spike = seen.seats[0].spike
    shown = [*map(signed, seen.own), "?" if spike is None else signed(spike)]
    shown += [] if seen.bought is None else [signed(seen.bought)]
    boxes = cards.split(f"= {signed(seen.sum)}")
    assert len(boxes) == 2 and "".join(boxes).split()[: len(shown)] == shown
    for action in table.table.hand.legal:
        assert f"({GameBoard.LETTERS[action]})" in text
    assert "q leave" in rows[-1] and len(rows) == table.app.size.height


def look_at_the_end(table: TableScreen, text: str) -> None:
    """Check that all shown hands are face up, with winner and reason."""
    hand = table.table.hand
    end = endings(hand, hand.moves[-1])[-1]
    assert f"Hand {end.number} is over" in text and f"takes {end.won}" in text
    rows = rows_of(text)
    for seat, shown in enumerate(end.seats):
        name = "you" if seat == 0 else "cautious"
        row = next(row for row in rows if row.removeprefix("★ ").startswith(f"{seat} {name} {shown.credits}"))
        assert row.startswith("★") == (seat == end.winner)
        if shown.cards:
            low, high, spike = map(signed, shown.cards)
            assert f"{low} {high} | {spike} {signed(sum(shown.cards))}" in row
        else:
            assert "|" not in row
    assert ("All others have folded." in text) == (end.rule is None)


@pytest.mark.parametrize(
    ("seats", "hands", "size", "by"),
    [(2, 3, SMALL, "digit"), (4, 1, LARGE, "mouse"), (8, 1, SMALL, "letter")],
)
@on_screen("game=spike seats={seats} hands={hands} seed=4 record=games.jsonl opponents=cautious")
async def test_whole_games(pilot: Pilot[int], seats: int, hands: int, size: tuple[int, int], by: str) -> None:
    """Every position and every end is checked on the whole screen."""

    async def go_on() -> None:
        if table.waits:
            await (pilot.click("#next") if by == "mouse" else pilot.press("enter" if by == "letter" else "n"))
            return
        action, legal = choice(table.table), table.table.hand.legal
        if by == "mouse":
            await pilot.click(list(table.query(".action"))[legal.index(action)])
        else:
            await pilot.press(GameBoard.LETTERS[action] if by == "letter" else str(legal.index(action) + 1))

    await pilot.resize_terminal(*size)
    table, held = await seated(pilot), 0
    while table.waits or not table.table.hand.over:
        look_at_the_table(table, text_of(pilot.app))
        held += bool(table.waits)
        await go_on()
        await settled(pilot, table)
    look_at_the_table(table, text_of(pilot.app))
    assert "Enter deals another" in text_of(pilot.app)
    await settled(pilot, table, "enter")
    assert table.table.score.games == 1 and "Hand 1 of" in text_of(pilot.app)
    record = Path("games.jsonl")
    [line] = record.read_text().splitlines()
    [result] = replay_file(record)
    played = json.loads(line).get("hands", [line])  # a single-hand game is that hand
    assert len(played) == held + 1 and len(result["credits"]) == seats


@on_screen("game=spike seats=4 hands=1 seed=12")
async def test_hidden_cards_are_not_on_the_screen(pilot: Pilot[int]) -> None:
    random, compared = np.random.default_rng(2), []

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
        await settled(pilot, table, "enter" if table.waits else staying_in(table))
    assert sum(compared) > 6


@on_screen("game=spike seed=4")
async def test_an_end_stays_until_enter_and_nothing_is_played_meanwhile(pilot: Pilot[int]) -> None:
    table = await seated(pilot)
    await settled(pilot, table, "f")
    assert table.waits and "All others have folded." in text_of(pilot.app)
    assert "Hand 1 is over. Press Enter for the next one." in text_of(pilot.app)
    moves = len(table.table.hand.moves)
    await pilot.press("1", "m", "u", "t", "o", "b")
    assert table.waits and len(table.table.hand.moves) == moves and not table.query(".action")
    await settled(pilot, table, "enter")
    assert not table.waits and "Hand 2 of 10" in text_of(pilot.app) and table.query(".action")


@on_screen("game=spike seats=3 hands=2 seed=5")
async def test_undo_and_log(pilot: Pilot[int]) -> None:
    table = await seated(pilot)
    before = text_of(pilot.app).splitlines()[:-6]
    await pilot.press("g")
    await wait(pilot, "the log", lambda: isinstance(pilot.app.screen, LogScreen))
    assert "Nothing has happened yet." in text_of(pilot.app)
    await settled(pilot, table, "g", "m")
    assert text_of(pilot.app).splitlines()[:-6] != before
    await settled(pilot, table, "u")
    assert text_of(pilot.app).splitlines()[:-6] == before and "Undone." in text_of(pilot.app)
    await settled(pilot, table, "m")
    await pilot.press("g")
    await wait(pilot, "the log", lambda: isinstance(pilot.app.screen, LogScreen))
    assert "Seat 0 stays without paying." in text_of(pilot.app)
    await pilot.press("q")
    await wait(pilot, "the table", lambda: pilot.app.screen is table)


@on_screen("game=spike opponents=[human] seed=3 hint=monte_carlo:samples:20", size=(120, 40))
async def test_the_second_person_at_the_table_does_not_see_the_cards_of_the_first(pilot: Pilot[int]) -> None:
    table = await seated(pilot)
    await settled(pilot, table, "t")
    await pilot.press("m")
    await wait(pilot, "the other person", lambda: table.viewer == 1 and table.is_quiet)
    text = text_of(pilot.app)
    assert "Seat 1 is to move" in text and "Your cards" not in text and "Values" not in text
    assert not table.query(".action")
    await settled(pilot, table, "m", "enter")
    assert table.may_act and "▶ 1 you" in text_of(pilot.app)
    own = " ".join(f"│{signed(card):^4}│" for card in view(table.table.hand, 1).own).replace("│ │", "││")
    assert own in text_of(pilot.app) and len(table.table.hand.moves) == 1


@on_screen("game=spike seats=8 seed=3 lang=it hint=monte_carlo:samples:20")
async def test_the_longest_words_fit_at_80_columns(pilot: Pilot[int]) -> None:
    """The longest possible: eight seats, two lines of discards, a bought card, values and odds."""
    table = await seated(pilot)
    while DISCARD not in table.table.hand.legal or len(view(table.table.hand, 0).dice) < 2:
        await settled(pilot, table, "enter" if table.waits else staying_in(table))
    await settled(pilot, table, "t")
    await settled(pilot, table, "o")
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


@on_screen("game=spike opponents=[human] seed=3")
async def test_who_takes_a_move_back_leaves_nothing_on_the_buttons_for_the_person_before(pilot: Pilot[int]) -> None:
    """The table is then covered, and buttons would reveal the coach's values for the other person's cards."""
    table = await seated(pilot)
    await pilot.press("1")
    await wait(pilot, "the next person", lambda: table.is_quiet)
    await asked(pilot, "enter")
    assert list(table.query(".action"))
    await pilot.press("u")
    await wait(pilot, "the cover", lambda: "let no one else look" in text_of(pilot.app))
    assert not list(table.query(".action"))
