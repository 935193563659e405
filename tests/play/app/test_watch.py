"""Spectator screen: every game, forwards and backwards, hidden and open, and from a file."""

import json
from pathlib import Path

import pytest
from textual.pilot import Pilot
from textual.widgets import RichLog, Static

from busso.play.app.menu import MenuScreen
from busso.play.app.watch import WatchScreen
from busso.play.language import LANGUAGES
from busso.play.views import open_hands, view
from tests.play.app.pilots import LARGE, SMALL, application, driven, on_screen, text_of, wait
from tests.play.test_watching import recorded


async def looked_at(pilot: Pilot[int]) -> WatchScreen:
    """Return the screen once nothing is being computed."""
    await wait(pilot, "a board", lambda: isinstance(pilot.app.screen, WatchScreen))
    screen = pilot.app.screen
    # The title appears as soon as the first position is being evaluated.
    there = lambda: screen.is_mounted and shown(pilot, "#title") and not screen.thinking  # noqa: E731
    await wait(pilot, "an end of thinking", there)
    return screen


async def press(pilot: Pilot[int], *keys: str) -> WatchScreen:
    for key in keys:
        await pilot.press(key)
        screen = await looked_at(pilot)
    return screen


def shown(pilot: Pilot[int], which: str) -> str:
    return str(pilot.app.screen.query_one(which, Static).content)


def told(pilot: Pilot[int]) -> str:
    """Return the notes in the corner, which tests do not draw."""
    return "\n".join(note.message for note in pilot.app._notifications)


@on_screen("watch=agents seed=7 pace=60 hint=monte_carlo:samples:5", size=LARGE)
async def test_closed_hands_stay_closed_and_nothing_can_be_played(pilot: Pilot[int]) -> None:
    screen = await looked_at(pilot)
    await press(pilot, "space", "o")
    for _ in range(3):
        for seat in "0123":
            await press(pilot, seat)
            hidden = {
                card
                for k, message in enumerate(open_hands(screen.table.hand))
                if k != int(seat)
                for card in str(message.values["cards"]).split()
            }
            words = set(text_of(pilot.app).replace(",", " ").replace(".", " ").replace(":", " ").split())
            assert len(hidden) > 20 and not hidden & words
        await press(pilot, "right")
    await pilot.click("#card-1")
    await wait(pilot, "a line", lambda: "you cannot play here" in told(pilot))
    assert screen.games.at == 3


@pytest.mark.slow
@on_screen("watch=agents game=sette_mezzo seed=3")
async def test_it_goes_on_by_itself_until_it_is_stopped(pilot: Pilot[int]) -> None:
    screen = await looked_at(pilot)
    await wait(pilot, "the second game", lambda: screen.games.number >= 2)
    await press(pilot, "space")
    place = screen.games.number, screen.games.at
    await pilot.pause(0.2)
    assert (screen.games.number, screen.games.at) == place and screen.is_quiet
    await press(pilot, "p")
    assert screen.games.number == place[0] - 1 and screen.games.at == 0
    await press(pilot, *["p"] * place[0])
    assert screen.games.number == 0 and "This is the first hand." in told(pilot)
    await press(pilot, "minus", "minus")
    assert screen.games.pace == 0.2
    await press(pilot, "plus")
    assert screen.games.pace == 0.1
    await pilot.click("#board")
    await pilot.press("q")
    await wait(pilot, "the menu", lambda: isinstance(pilot.app.screen, MenuScreen))


SPIKE = "game=spike seats=3 hands=1 hint=monte_carlo:samples:20"


@pytest.mark.parametrize("game", ["game=blackjack decks=1", "game=sette_mezzo", SPIKE])
@on_screen("watch=agents seed=4 pace=60 {game}")
async def test_every_game_is_looked_on_at(pilot: Pilot[int], game: str) -> None:
    screen = await looked_at(pilot)
    await press(pilot, "space")
    while screen.table.hand.over:
        await press(pilot, "n")
    assert "█" in shown(pilot, "#values")
    await press(pilot, "b")
    assert not screen.query_one("#values").display
    before = view(screen.table.hand, 0)
    await press(pilot, "right", "left")
    assert view(screen.table.hand, 0) == before
    number = screen.games.number
    await press(pilot, "n")
    assert screen.games.number == number + 1 and screen.games.at == 0
    await press(pilot, "p")
    while screen.games.following is not None:
        await press(pilot, "right")
    assert screen.table.hand.over and "The hand is over." in shown(pilot, "#prompt")


def test_a_file_with_several_games_and_a_match(tmp_path: Path) -> None:
    """Each on its own board; at both ends there is a line."""
    path = tmp_path / "games.jsonl"
    recorded(path, "match=11", "opponents=random", games=1)
    hands = len(path.read_text().splitlines())
    recorded(path, "game=sette_mezzo", games=1)

    async def script(pilot: Pilot[int]) -> None:
        await looked_at(pilot)
        screen = await press(pilot, "space", "b", "p")
        assert screen.games.number == 0 and "games.jsonl, line 1" in shown(pilot, "#title")
        assert "0, 0 of 11" in shown(pilot, "#title")
        for _ in range(hands - 1):
            await press(pilot, "n")
        while not screen.table.hand.over:
            await press(pilot, "right")
        score = screen.table.match_score
        assert score is not None and max(score) >= 11 and f"{score[0]}, {score[1]} of 11" in shown(pilot, "#title")
        await pilot.press("n")
        await wait(pilot, "the other board", lambda: pilot.app.screen is not screen)
        other = await looked_at(pilot)
        assert other.table.game.name == "sette_mezzo" and not other.games.playing
        assert f"line {hands + 1}" in shown(pilot, "#title")
        await press(pilot, "n")
        assert other.games.number == hands and pilot.app.screen is other
        await pilot.press("p")
        await wait(pilot, "the first board", lambda: pilot.app.screen is not other)
        again = await looked_at(pilot)
        assert again.table.game.name == "tressette"
        await pilot.press("q")
        await wait(pilot, "the menu", lambda: isinstance(pilot.app.screen, MenuScreen))

    driven(application(f"watch={path}", "pace=60", "hint=monte_carlo:samples:5"), script)


@pytest.mark.parametrize("lang", LANGUAGES)
@on_screen("watch=agents game=sette_mezzo seed=3 pace=60 lang={lang}")
async def test_its_keys_fit_and_can_be_clicked(pilot: Pilot[int], lang: str) -> None:
    screen = await looked_at(pilot)
    (row, keys) = next((k, line) for k, line in enumerate(text_of(pilot.app).splitlines()) if "Space" in line)
    assert row == SMALL[1] - 1 and len(keys) < SMALL[0] and keys.split()[-2] == "q"
    await pilot.click(offset=(keys.index("Space"), row))
    assert not (await looked_at(pilot)).games.playing
    await pilot.click(offset=(keys.index("→"), row))
    assert (await looked_at(pilot)).games.at == 1
    await pilot.click(offset=(keys.index("←"), row))
    assert (await looked_at(pilot)).games.at == 0
    assert len(screen.query_one("#log", RichLog).lines) == 0


@on_screen("watch=agents seed=7 pace=60 opponents=monte_carlo:samples:2000 hint=monte_carlo:samples:5")
async def test_leaving_does_not_wait_for_a_whole_hand(pilot: Pilot[int]) -> None:
    screen = await looked_at(pilot)
    await pilot.press("space", "n")  # a hand of 40 slow moves is fast-forwarded to its end
    await pilot.press("q")
    await wait(pilot, "the menu", lambda: isinstance(pilot.app.screen, MenuScreen), 20)
    assert len(screen.games.scene.hand.moves) < 40


def test_recorded_games_have_the_names_of_their_records(tmp_path: Path) -> None:
    """A record without names has none, and a screen with the score has none for records."""
    recorded(tmp_path / "games.jsonl", "game=sette_mezzo", games=2)
    first, second = map(json.loads, (tmp_path / "games.jsonl").read_text().splitlines())
    (tmp_path / "games.jsonl").write_text(f"{json.dumps(first | {'names': ['Ada']})}\n{json.dumps(second)}\n")

    async def script(pilot: Pilot[int]) -> None:
        await press(pilot, "space")
        assert " · Ada · " in shown(pilot, "#title") and "games.jsonl" in shown(pilot, "#title")
        await press(pilot, "n")
        assert "Ada" not in shown(pilot, "#title") and "games.jsonl" in shown(pilot, "#title")

    driven(application(f"watch={tmp_path}/games.jsonl"), script)
