"""Blackjack on its screen: by key, by mouse and by itself, while MC, TD and Q-learning learn."""

import re
from pathlib import Path

import pytest
from textual.pilot import Pilot
from textual.widgets import Button, Input, Select

from busso.play.app.screens.blackjack import AdjustScreen, GameScreen
from busso.play.app.screens.blackjack_board import ValueTable
from busso.play.blackjack_lab.value_table import QUANTITIES
from tests.play.app.pilots import asked, on_screen, seated, text_of, wait


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
    return "\n".join(table._news)


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
    policy, index = table.lessons["ql"].learned.policy, table.lessons._subject.model.index
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
