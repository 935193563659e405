"""Blackjack by key, by mouse and by itself, while MC, TD and Q-learning learn; and Sette e mezzo on its screen."""

import re
from pathlib import Path

import pytest
from textual.pilot import Pilot
from textual.widgets import Button, Input, Select, Static

from busso.play.app.screens.blackjack import AdjustScreen, GameScreen
from busso.play.app.screens.blackjack_board import ValueTable
from busso.play.app.screens.sette_mezzo import GameScreen as SetteScreen
from busso.play.blackjack_lab.value_table import QUANTITIES
from busso.play.views import view
from busso.play.views.small import SmallView
from busso.sette_mezzo.rules import HIT, STICK
from tests.play.app.pilots import LARGE, asked, on_screen, seated, text_of, wait
from tests.play.people import replayed


async def learned(pilot: Pilot[int], table: GameScreen, name: str, episodes: int) -> None:
    learner = table.lessons[name]
    await wait(pilot, f"{name} {episodes}", lambda: learner.learned and learner.learned.episodes >= episodes)


@on_screen("game=blackjack seed=7")
async def test_games_by_key_and_by_mouse(pilot: Pilot[int]) -> None:
    table = await seated(pilot)
    text = text_of(pilot.app)
    assert "│ 8 ││░░░│" in text and "│ A ││ 7 │" in text and "You: 18, an ace counting 11" in text
    assert "Your turn" in text and "it draws to 17 or to your sum" in text
    await asked(pilot, "h")
    assert table.table.hand.actions == [1]
    await asked(pilot, "u")
    assert table.table.hand.actions == []
    await asked(pilot, "s")
    text = text_of(pilot.app)
    assert table.table.hand.over and "▶ You lose." in text and "░" not in text and "The dealer: 19" in text
    assert "Games: 1. Won 0, tied 0, lost 1." in text
    await asked(pilot, "enter")
    for number, choose in enumerate(("stand", "hit")):
        while table.table.number == number + 1 and not table.table.hand.over:
            button = next(b for b in table.query(".action").results(Button) if choose in str(b.label))
            before = len(table.table.hand.moves)
            await pilot.click(button)
            await wait(pilot, "a move", lambda before=before: len(table.table.hand.moves) == before + 1)
            await asked(pilot)
        await asked(pilot, "n")
    score = table.table.score
    assert score.games >= 3 and f"Games: {score.games}. Won {score.wins[0]}" in text_of(pilot.app)


@pytest.mark.slow
@on_screen("game=blackjack seed=7")
async def test_methods_are_started_and_paused_and_the_heatmap_changes(pilot: Pilot[int]) -> None:
    table = await seated(pilot)
    await pilot.press("b", "l")
    # The code may have been compiled by another test.
    assert "l …QL" in text_of(pilot.app) or "l ●QL" in text_of(pilot.app)
    assert table.lessons.choices.speed == 10_000
    await learned(pilot, table, "ql", 2_000)
    await pilot.press("l")
    await wait(pilot, "cells", lambda: sum(cell.strip() == "·" for cell in _cells(table)) < 100)
    early, few = _cells(table), table.lessons["ql"].learned.episodes
    assert "l ○QL" in text_of(pilot.app) and not table.lessons["ql"].running
    await pilot.click("#ql")
    await learned(pilot, table, "ql", few + 20_000)
    await pilot.pause(0.3)
    assert "l ●QL" in text_of(pilot.app) and _cells(table) != early
    await pilot.click("#mc")
    await learned(pilot, table, "mc", 5_000)
    assert all(table.lessons[name].running for name in ("mc", "ql")) and table.method == "mc"
    await pilot.press("m", "l")
    shown = {}
    for quantity in QUANTITIES:
        assert table.quantity == quantity
        shown[quantity] = _cells(table)
        await pilot.press("x")
    assert len({tuple(cells) for cells in shown.values()}) == len(QUANTITIES)
    assert re.fullmatch(r"[+-]\d+|0|·", shown["value"][0].strip()) and shown["best"][0][1] in "HS·"
    await asked(pilot, "s")
    text = text_of(pilot.app)
    assert "you 18, dealer 19 · You lose." in text and "Games: 1. Won: 0." in text and "Enter deals" in text
    await pilot.press("r")
    assert table.lessons["mc"].learned is None and "MC starts with an empty table." in text_of_log(table)
    await pilot.press("c")
    assert table.method == "td" and all(cell.strip() == "·" for cell in _cells(table))


def _cells(table: GameScreen) -> list[str]:
    return [cell.text for row in table.query_one("#hard", ValueTable).first.cells for cell in row]


def text_of_log(table: GameScreen) -> str:
    return str(table.query_one("#news", Static).render())


@on_screen("game=blackjack seed=7")
async def test_autoplay_plays_what_was_learned_and_can_be_stopped(pilot: Pilot[int]) -> None:
    table = await seated(pilot)
    await pilot.press("a")
    await wait(pilot, "a refusal", lambda: not table.autoplay)
    assert table.table.hand.actions == [] and table.table.score.games == 0
    await pilot.press("l")
    await learned(pilot, table, "ql", 5_000)
    await pilot.press("l", "a")
    await wait(pilot, "games", lambda: table.table.score.games >= 5)
    await asked(pilot, "a")
    games, moves = table.table.score.games, len(table.table.hand.moves)
    await pilot.pause(0.3)
    assert (games, moves) == (table.table.score.games, len(table.table.hand.moves)) and "a ○Auto" in text_of(pilot.app)
    policy, game = table.lessons["ql"].learned.policy, table.table.game
    index = game.model(game.options, next(iter(game.rewards))).index
    for move in table.table.hand.moves:
        assert move.action == policy[int(index(move.before[0]))]


@on_screen("game=blackjack seed=7")
async def test_the_form_changes_epsilon_and_begins_a_new_table_for_new_rules(pilot: Pilot[int]) -> None:
    table = await seated(pilot)
    await pilot.press("l")
    await learned(pilot, table, "ql", 1_000)
    old, lessons = table.session, table.lessons
    form = await _form(pilot)
    form.query_one("#epsilon", Input).value = "1.5"
    await pilot.press("ctrl+s")
    await pilot.pause()
    assert "epsilon: expected 0 to 1, not 1.5" in text_of(pilot.app)
    form.query_one("#epsilon", Input).value = "0.1"
    await pilot.click("#apply")
    await wait(pilot, "the table", lambda: pilot.app.screen is table)
    assert lessons["ql"].process.settings.epsilon == 0.1 and table.session is old and table.lessons is lessons
    form = await _form(pilot)
    form.query_one("#decks", Select).value = "2"
    form.query_one("#ties", Select).value = "push"
    await pilot.press("ctrl+s")
    await wait(pilot, "new rules", lambda: table.session is not old and table.is_quiet)
    options = table.table.game.options
    assert (options.decks, options.ties) == (2, "push") and not lessons["ql"].running
    assert table.lessons.choices.epsilon == 0.1 and table.lessons["ql"].learned is None
    assert "New rules, new table." in text_of_log(table) and len(list(Path("saves").iterdir())) == 1
    assert table.session.coach.game is table.table.game
    await asked(pilot, "s")
    assert table.table.score.games == 1
    await pilot.press("d")
    await learned(pilot, table, "td", 1_000)
    await pilot.press("q")
    await wait(pilot, "the menu", lambda: pilot.app.screen is not table)
    assert not table.lessons["td"].running


async def _form(pilot: Pilot[int]) -> AdjustScreen:
    await pilot.press("e")
    await wait(pilot, "the form", lambda: isinstance(pilot.app.screen, AdjustScreen))
    return pilot.app.screen


async def judged(pilot: Pilot[int], table: SetteScreen, decisions: int) -> None:
    """Wait until the coach has judged this number of decisions."""
    await asked(pilot)
    await wait(pilot, "the coach", lambda: table.coaching.decisions == decisions)


def look_at_the_table(table: SetteScreen, text: str) -> None:
    """Check that the screen shows both hands, their values, the score or result, and the keys."""
    hand = table.table.hand
    seen: SmallView = view(hand, 0)
    assert f"You: {seen.counts}" in text and "The opponent: " in text
    cards = " ".join(text.replace("│", " ").split())
    faces = [f"{card} ½" if card in "FCR" else card for card in (*seen.cards, *seen.other)]
    assert len(seen.cards) > 6 or " ".join(faces) in cards
    assert ("it draws until it has 5" in text) == (not hand.over) and ("Your turn" in text) == (not hand.over)
    score = table.table.score
    lost = score.games - score.wins[0] - score.ties
    assert f"Games {score.games} · won {score.wins[0]}, tied {score.ties}, lost {lost}" in text
    if hand.over:
        assert {"win": "You win.", "tie": "A tie.", "lose": "You lose."}[seen.outcome or ""] in text
        assert f"The opponent: {seen.other_counts}" in text and "Enter deals another" in text


@pytest.mark.parametrize("by", ["letters", "mouse"])
@on_screen("game=sette_mezzo seed=2 record=games.jsonl")
async def test_whole_games(pilot: Pilot[int], by: str) -> None:
    if by == "mouse":
        await pilot.resize_terminal(*LARGE)
    table, decisions = await seated(pilot), 0
    while table.table.score.games < 4 or not table.table.hand.over:
        look_at_the_table(table, text_of(pilot.app))
        if table.table.hand.over:
            await (pilot.click("#next") if by == "mouse" else pilot.press("enter"))
            await asked(pilot)
            continue
        decisions += 1
        action = HIT if decisions % 3 else STICK
        if by == "mouse":
            await wait(pilot, "buttons", lambda: len(table.query(".action")) == 2)
            await pilot.click(list(table.query(".action"))[action])
        else:
            await pilot.press("sh"[action])
        await judged(pilot, table, decisions)
    look_at_the_table(table, text_of(pilot.app))
    assert len(replayed(Path("games.jsonl"))) == 4


@on_screen("game=sette_mezzo seed=15")
async def test_the_coach_is_turned_off_and_on_and_forgets_what_was_taken_back(pilot: Pilot[int]) -> None:
    table = await seated(pilot)
    hint = table.session.coach.hint(table.table.hand)
    assert hint[0].action == HIT and "Coach on (c: off)" in text_of(pilot.app)
    await pilot.press("c")
    await pilot.pause()
    assert "Coach off (c: on)" in text_of(pilot.app)
    await asked(pilot, "h")
    await pilot.press("c")
    assert table.table.hand.over is False and table.coaching.decisions == 0
    await pilot.press("h")
    await judged(pilot, table, 1)
    assert "Coach: hit cost you" in text_of(pilot.app)
    await asked(pilot, "u")
    assert table.coaching.decisions == 0 and "Coach: " not in text_of(pilot.app)
    await pilot.press("s")
    await judged(pilot, table, 1)
    assert table.coaching.mistakes == 0 and "Coach: " not in text_of(pilot.app)
