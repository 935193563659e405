"""Tressette table by keys and mouse, and its screen."""

import re
import threading
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path

import pytest
from textual.pilot import Pilot
from textual.widgets import OptionList

from busso.play.app.table import ReviewScreen, TableScreen
from busso.play.views import stays_longer, view
from busso.play.views.tressette import TressetteView, trick_of
from busso.tressette.cards import card_text
from tests.play.app.pilots import LARGE, SMALL, asked, far_on, on_screen, seated, text_of, wait
from tests.play.people import replayed

SUITS = "[♦♥♠♣] ([DCSB])"


def seen(table: TableScreen) -> TressetteView:
    return view(table.table.hand, table.viewer)


def own(table: TableScreen) -> list[str]:
    return [card for suit in seen(table).hand for card in suit]


def hand_shown(pilot: Pilot[int]) -> list[str]:
    """Return the row of cards at the bottom of the screen, each with the digit that plays it."""
    lines = text_of(pilot.app).splitlines()
    row = max((k for k, line in enumerate(lines) if re.search(SUITS, line)), default=0)
    suits, ranks = re.findall(SUITS, lines[row]), re.findall(r"[║│╎]  (\w) [ ×][║│╎]", lines[row - 1])
    digits = re.findall(r"\d", lines[row + 1])
    assert digits == [str((k + 1) % 10) for k in range(len(suits))]
    return [rank + suit for rank, suit in zip(ranks, suits, strict=True)]


def cards_on_the_table(pilot: Pilot[int]) -> set[str]:
    """Return the cards at the four places."""
    boxes = (str(box.render()).split("\n") for box in pilot.app.screen.query("SeatPlace .card"))
    inner = ((lines[1][1:-1].strip(), lines[-2][1:-1].split()[-1:]) for lines in boxes)
    return {rank + suit[0][0].upper() for rank, suit in inner if suit}


def barred(table: TableScreen) -> list[int]:
    return [k for k, card in enumerate(own(table)) if card not in seen(table).legal]


async def play_a_hand(pilot: Pilot[int], table: TableScreen, pick: Callable[[int], Awaitable[object]]) -> None:
    """Play to the end of the hand by `pick(index in the hand)`, and pick a card that is refused."""
    refused = False
    while not table.table.hand.over:
        cards = own(table)
        if pilot.app.size == SMALL:
            assert hand_shown(pilot) == cards
        assert cards_on_the_table(pilot) == {place.card for place in trick_of(seen(table)).places} - {None}
        assert "Your turn, seat 0." in text_of(pilot.app)
        if not refused and barred(table):
            await refusal(pilot, table, pick)
            refused = True
        legal = [k for k, card in enumerate(cards) if card in seen(table).legal]
        number = len(table.table.hand.moves)
        await pick(legal[number % len(legal)])
        await asked(pilot)
        hand, moves = table.table.hand, table.table.hand.moves
        assert card_text(moves[number].action) == cards[legal[number % len(legal)]]
        assert [k for k, move in enumerate(moves) if stays_longer(hand, move)] == list(range(3, len(moves), 4))
    assert refused


async def refusal(pilot: Pilot[int], table: TableScreen, pick: Callable[[int], Awaitable[object]]) -> None:
    """Check that an illegal card is answered with the reason and changes nothing."""
    assert "×" in text_of(pilot.app)
    before, moves = table.table.hand.state.copy(), len(table.table.hand.moves)
    place = barred(table)[0]
    await pick(place)
    await pilot.pause()
    assert re.search(rf"× You must follow \w+, so not {own(table)[place]}\.", text_of(pilot.app))
    assert (table.table.hand.state == before).all() and len(table.table.hand.moves) == moves and table.may_act


@on_screen("seed=7")
async def test_a_hand_by_digits_and_by_pointing(pilot: Pilot[int]) -> None:
    table = await seated(pilot)
    digits = iter(range(1000))

    async def pick(place: int) -> None:
        if next(digits) % 2:
            await pilot.press(str((place + 1) % 10))
            return
        for _ in own(table):
            if f"╚══{(place + 1) % 10}" in text_of(pilot.app):
                break
            await pilot.press("right" if place % 2 else "left")
        await pilot.press("enter" if place % 3 else "space")

    await play_a_hand(pilot, table, pick)
    text = text_of(pilot.app)
    ours, theirs = seen(table).points[0], seen(table).points[1]
    assert f"The hand is over: you {ours}, they {theirs}." in text
    assert ("You win." if ours > theirs else "You lose.") in text and "takes it" in text
    hand = table.table.hand
    await asked(pilot, "enter")
    assert table.table.hand is not hand and len(own(table)) == 10 == len(hand_shown(pilot))


@on_screen("seed=8", opened=partial(far_on, 5), size=LARGE)
async def test_the_end_of_a_hand_by_mouse_on_a_large_screen(pilot: Pilot[int]) -> None:
    table = await seated(pilot)
    await play_a_hand(pilot, table, lambda place: pilot.click(f"#card-{place + 1}", offset=(4, 2)))
    text = text_of(pilot.app)
    assert "The hand is over" in text and re.search("denari|coppe|spade|bastoni", text)
    assert len(re.findall(r"Seat \d plays", text)) > 10  # the log


@on_screen("seed=9 match=11 accusi=true signals=true record=games.jsonl")
async def test_a_match_to_its_end_is_a_record(pilot: Pilot[int]) -> None:
    table = await seated(pilot)
    while not table.table.game_over:
        if table.table.hand.over:
            ours, theirs = table.table.match_score or (0, 0)
            assert f"Match to 11: you {ours}, they {theirs}." in text_of(pilot.app)
            await pilot.press("n")
        else:
            await pilot.press(str((own(table).index(seen(table).legal[0]) + 1) % 10))
        await asked(pilot)
    ours, theirs = table.table.match_score or (0, 0)
    won = "win" if ours > theirs else "lose"
    text = text_of(pilot.app)
    assert f"You {won} the match to 11: {ours} to {theirs}." in text and "The game is over" in text
    assert len(table.table.hands) > 1
    await asked(pilot, "enter")
    assert table.table.match_score == [0, 0] and table.table.number == 1
    await pilot.press("q")
    await wait(pilot, "the menu", lambda: not isinstance(pilot.app.screen, TableScreen))
    assert len(replayed(Path("games.jsonl"))) > 1
    assert Path("saves/tressette-9.json").exists()  # the second match was unfinished


@on_screen("seed=7 hint=monte_carlo:samples:10")
async def test_hint_undo_and_the_last_trick(pilot: Pilot[int]) -> None:
    table = await seated(pilot)
    await pilot.press("u")
    assert "Nothing to undo" in text_of(pilot.app)
    await pilot.press("t")
    await wait(pilot, "a hint", lambda: table.may_act)
    values = re.findall(r"★?\d+\.\d\d", text_of(pilot.app))
    assert len(values) == len(seen(table).legal) and sum("★" in value for value in values) >= 1
    before, cards = table.table.hand.state.copy(), own(table)
    await asked(pilot, str((cards.index(seen(table).legal[0]) + 1) % 10))
    assert "★" not in text_of(pilot.app) and own(table) != cards
    last = {card for _, card in seen(table).last_trick}
    await pilot.press("l")
    assert cards_on_the_table(pilot) == last and "Trick 1 of 10, taken" in text_of(pilot.app)
    await pilot.press("l")
    assert cards_on_the_table(pilot) == {card for _, card in seen(table).trick or seen(table).last_trick}
    await asked(pilot, "u")
    assert (table.table.hand.state == before).all() and hand_shown(pilot) == cards
    assert "Undone." in text_of(pilot.app) and "probab" not in text_of(pilot.app)


@on_screen("opponents=[human,greedy] seed=5", opened=partial(far_on, 12))
async def test_nobody_sees_the_cards_of_another_person(pilot: Pilot[int]) -> None:
    await wait(pilot, "a table", lambda: isinstance(pilot.app.screen, TableScreen))
    table = pilot.app.screen
    assert isinstance(table, TableScreen)
    covers, refresh, frames = 0, table.refresh_table, list[str]()

    def refreshed() -> None:
        refresh()
        frames.append(text_of(pilot.app))  # a frame before the next layout

    table.refresh_table = refreshed  # type: ignore[method-assign]
    while not table.table.hand.over:
        text = text_of(pilot.app)
        held = {seat: [c for suit in view(table.table.hand, seat).hand for c in suit] for seat in table.table.people}
        covered = "let no one else look" in text
        shown = set() if covered else set(own(table))
        hidden = {card for cards in held.values() for card in cards} - shown
        assert not hidden & set(re.findall(r"\b[2-7AFCR][DCSB]\b", text))
        assert covered or not table.is_quiet or hand_shown(pilot) == own(table)
        if covered:
            assert not re.search(SUITS, text)
            covers += 1
            await pilot.press("enter")
        elif table.may_act:
            if barred(table):
                await pilot.press(str((barred(table)[0] + 1) % 10), "t")
                await wait(pilot, "a hint", lambda: table.may_act)
            await pilot.press(str((own(table).index(seen(table).legal[-1]) + 1) % 10))
        else:
            await pilot.pause(0.005)
    await asked(pilot)
    assert covers == 8
    held_up, reply = threading.Event(), table.session.reply
    table.session.reply = lambda: (held_up.wait(60), reply())[1]  # type: ignore[method-assign]
    await pilot.press("n")  # the next deal is covered from the start, while players lead
    await wait(pilot, "a deal", lambda: "is thinking" in text_of(pilot.app))
    assert table.table.turn in (2, 3) and not re.search(SUITS, text_of(pilot.app))
    held_up.set()
    await wait(pilot, "a turn", lambda: table.is_quiet)
    assert "let no one else look" in text_of(pilot.app) and not re.search(SUITS, text_of(pilot.app))
    covered_frames = [text for text in frames if "let no one else look" in text]
    assert len(covered_frames) >= 8 and not [text for text in covered_frames if re.search(SUITS, text)]


@on_screen("seed=7 hint=monte_carlo:samples:20")
async def test_the_review_by_keys_and_by_mouse(pilot: Pilot[int]) -> None:
    table = await seated(pilot)
    await pilot.press("v")
    assert "No hand is over yet" in text_of(pilot.app)
    while not table.table.hand.over:
        table.action_choose(table.table.hand.legal[0])
        await asked(pilot)
    await pilot.press("v")
    await wait(pilot, "the review", lambda: isinstance(pilot.app.screen, ReviewScreen))
    await pilot.pause()
    text = text_of(pilot.app)
    judged = [line for line in text.splitlines()[1:11] if re.match(r" [✓·!] ", line)]
    decisions = [int(line.split()[1]) for line in judged]
    assert decisions == sorted(decisions) and 3 <= len(decisions) <= 10 and "as played" in text
    first, second = decisions[:2]
    assert f"Before move {first}, seat 0:" in text and "← played" in text and "★" in text
    for _, card in seen_before(table, first).trick:  # played cards, so in brackets among the revealed hands
        assert f"({card})" in text
    assert len(re.findall(r"\b[2-7AFCR][DCSB]\b", text[text.index("All hands") :])) >= 40
    await pilot.press("down")
    await pilot.pause()
    assert f"Before move {second}, seat 0:" in text_of(pilot.app)
    await pilot.press("s")
    await pilot.pause()
    costs = [float(cost) for cost in re.findall(r" [·!] +\d+ \w\w -(\d+\.\d\d)", text_of(pilot.app))]
    assert costs and costs == sorted(costs, reverse=True) and "worst first" in text_of(pilot.app)
    options = pilot.app.screen.query_one("#review-list", OptionList)
    await pilot.click("#review-list", offset=(6, 1))
    await pilot.pause()
    assert options.highlighted == 1
    assert f"Before move {options.get_option_at_index(1).id}," in text_of(pilot.app)
    await pilot.press("q")
    assert pilot.app.screen is table
    await asked(pilot, "enter")
    assert not table.table.hand.over  # the next hand is dealt
    await pilot.press("v")
    await wait(pilot, "the same review", lambda: isinstance(pilot.app.screen, ReviewScreen))
    assert f"Before move {first}, seat 0:" in text_of(pilot.app)


def seen_before(table: TableScreen, number: int) -> TressetteView:
    return view(table.table.hand.until(number - 1), 0)


@pytest.mark.parametrize("lang", ["en", "it"])
@on_screen("seed=3 match=41 signals=true accusi=true lang={lang}", opened=partial(far_on, 5))
async def test_nothing_is_cut_off_at_80_by_24(pilot: Pilot[int], lang: str) -> None:
    table = await seated(pilot)
    while not table.table.hand.over:
        for line in text_of(pilot.app).splitlines():
            assert len(line) <= 80 and not line.rstrip().endswith("…")
        for static in table.query("#known, #hand, #prompt, .who, .keys"):
            assert table.region.contains_region(static.region)
        known = table.query_one("#known")
        assert known.region.height >= known.get_content_height(known.container_size, table.size, known.region.width)
        keys = table.query_one(".keys")
        assert keys.get_content_width(keys.container_size, table.size) <= 78
        table.action_choose(table.table.hand.legal[0])
        await asked(pilot)
