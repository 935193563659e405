"""Simulated person who plays Corellian Spike by letters, digits or mouse, and checks the whole screen."""

from collections.abc import Awaitable, Callable

from textual.pilot import Pilot

from busso.play.app.screens.spike import GameBoard
from busso.play.app.table.table import TableScreen
from busso.play.views import view
from busso.play.views.spike import SpikeView
from busso.play.views.spike_board import endings, signed
from busso.spike.cards import BUY, MATCH, SWAP_LOWER
from tests.play.app.pilots import text_of, wait
from tests.play.people import choice

Do = Callable[[TableScreen], Awaitable[object]]


async def settled(pilot: Pilot[int], table: TableScreen) -> None:
    """Wait until a person can move, with buttons, or the end of a hand is shown."""

    def holds() -> bool:
        buttons = [button.name for button in table.query(".action")]
        return (table.may_act and buttons == list(map(str, table.table.hand.legal))) or (
            not buttons and (table.waits or (table.table.hand.over and table.is_quiet))
        )

    await wait(pilot, "a turn", holds)


async def play_through(
    pilot: Pilot[int], table: TableScreen, do: Do, look: Callable[[TableScreen, str], None] = lambda *_: None
) -> None:
    """Play the game to its end with `do` at every turn, checking every position and every end."""
    while not (table.table.hand.over and not table.waits):
        look(table, text_of(pilot.app))
        await do(table)
        await settled(pilot, table)
    look(table, text_of(pilot.app))


def staying_in(table: TableScreen) -> str:
    """Return the letter of the action that leads to the most cards and dice."""
    return GameBoard.LETTERS[next(action for action in (BUY, SWAP_LOWER, MATCH) if action in table.table.hand.legal)]


def by_letter(pilot: Pilot[int]) -> Do:
    return lambda table: pilot.press("enter" if table.waits else GameBoard.LETTERS[choice(table.table)])


def by_digit(pilot: Pilot[int]) -> Do:
    def do(table: TableScreen) -> Awaitable[object]:
        return pilot.press("n" if table.waits else str(table.table.hand.legal.index(choice(table.table)) + 1))

    return do


def by_mouse(pilot: Pilot[int]) -> Do:
    def do(table: TableScreen) -> Awaitable[object]:
        if table.waits:
            return pilot.click("#next")
        wanted = str(choice(table.table))
        return pilot.click(next(button for button in table.query(".action") if button.name == wanted))

    return do


def rows_of(text: str) -> list[str]:
    """Return the lines of a screen without borders and with single spaces."""
    return [" ".join(line.replace("│", " ").split()) for line in text.splitlines()]


def look_at_the_table(table: TableScreen, text: str) -> None:
    """Check that all information needed to play is on the screen, uncut."""
    if table.waits or table.table.hand.over:
        return look_at_the_end(table, text)
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
    return None


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
        if shown.cards is not None:
            low, high, spike = map(signed, shown.cards)
            assert f"{low} {high} | {spike} {signed(shown.sum or 0)}" in row
        else:
            assert "|" not in row
    assert ("All others have folded." in text) == (end.rule is None)
