"""The page without a browser: the menu, tables of all games, hints, saves, watching, learning, escaped texts."""

import asyncio
import json
import re
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from busso.evaluate.review.drawing import rounds
from busso.play.web.desk import Desk
from busso.play.web.table import TableRoom
from tests.limits import seconds
from tests.play.people import ROOT, choice, composed, replayed

Script = Callable[["Person"], Awaitable[None]]
OWN = str(ROOT / "examples/own/briscola.py")


class Person:
    """Person who looks at a page and clicks on it."""

    def __init__(self, desk: Desk) -> None:
        self.desk = desk

    @property
    def html(self) -> str:
        return self.desk.page()["html"]

    @property
    def text(self) -> str:
        return " ".join(re.sub(r"<[^>]*>", " ", self.html).split())

    @property
    def room(self) -> TableRoom:
        assert isinstance(self.desk.room, TableRoom)
        return self.desk.room

    def do(self, what: str, value: str = "", key: str = "") -> None:
        self.desk.receive(what, value, key)

    async def until(self, seen: Callable[[], object], limit: float = 60) -> None:
        loop = asyncio.get_running_loop()
        start = loop.time()
        while not seen():
            assert loop.time() - start < seconds(limit), self.text
            await asyncio.sleep(0.01)

    async def sees(self, text: str, limit: float = 60) -> None:
        await self.until(lambda: text in self.text, limit)

    async def play(self, until: Callable[[], object]) -> None:
        """Play by `choice`."""
        while not until():
            await self.until(lambda: until() or self.room.legal() or self.room.goes_on)
            if not until():
                legal = self.room.legal()
                self.do("choose", str(choice(self.room.table))) if legal else self.do("next")
            await asyncio.sleep(0)


def meet(script: Script, *overrides: str) -> None:
    """Run a script with a page at the table of these overrides, or in the menu."""

    async def run() -> None:
        settings, given = composed(*overrides, "pace=0")
        desk = Desk(settings, given if overrides else {})
        try:
            await script(Person(desk))
        finally:
            await desk.close()

    asyncio.run(run())


@pytest.mark.parametrize(
    ("game", "lang"), [("tressette", "it"), ("spike", "en"), ("blackjack", "it"), ("sette_mezzo", "en"), (OWN, "it")]
)
def test_a_game_to_its_end_with_everything_that_is_offered(game: str, lang: str) -> None:
    async def script(person: Person) -> None:
        await person.until(lambda: person.desk.room is not None)
        room = person.room
        await person.until(lambda: room.legal() or room.table.hand.over)
        if room.legal():
            for what in ("hint", "odds"):
                person.do(what)
                await person.until(lambda: not room.thinking)
                assert person.html
            if game != OWN:
                assert 'class="worth best"' in person.html
        await person.play(lambda: room.table.hand.over and room.is_quiet and not room.waits)
        assert 'data-do="next"' in person.html
        person.do("review")
        await person.until(lambda: not room.thinking)
        person.do("at", "next_mistake")
        assert 'class="sheet wide"' in person.html
        assert room.review is not None and person.html.count('class="round"') == len(rounds(room.review[0]))
        person.do("next")
        person.do("next")
        await person.until(lambda: room.table.number == 1 or len(room.table.hands) > 1)

    hands = ("hands=2",) if "spike" in game else ()
    meet(script, f"game={game}", f"lang={lang}", "seed=4", "record=games.jsonl", *hands)
    assert replayed(Path("games.jsonl"))


def test_an_action_that_may_not_be_is_refused_with_a_reason_and_undo_takes_one_back() -> None:
    async def script(person: Person) -> None:
        await person.sees("Your turn")
        table = person.room.table
        moves = len(table.hand.moves)
        person.do("choose", str(next(a for a in range(table.game.actions) if a not in table.hand.legal)))
        assert "×" in person.text and len(table.hand.moves) == moves
        person.do("choose", "one")
        person.do("no_such_thing")
        assert len(table.hand.moves) == moves
        person.do("undo")
        assert "Nothing to undo" in person.text
        person.do("choose", str(table.hand.legal[0]))
        await person.until(person.room.legal)
        person.do("undo")
        await person.until(lambda: person.room.legal() and len(table.hand.moves) == moves)

    meet(script, "game=tressette", "seed=7")


def test_a_table_is_saved_while_it_is_played_and_resumed_from_the_menu(capfd: pytest.CaptureFixture[str]) -> None:
    async def script(person: Person) -> None:
        await person.sees("Your turn")
        assert json.loads(Path("saves/tressette-7.json").read_text())["seed"] == 7  # even if the server is killed
        person.do("leave")
        await person.sees("Saved tables (1)")
        assert "resume with busso play save=saves/tressette-7.json" in person.text
        person.do("resume", "0")
        await person.sees("Your turn")
        person.do("hint")
        await person.sees("★")

    meet(script, "game=tressette", "seed=7")
    assert "resume with busso play save=saves/tressette-7.json" in capfd.readouterr().err


@pytest.mark.parametrize("resumed", [False, True])
def test_a_finished_game_leaves_no_save(resumed: bool) -> None:
    async def script(person: Person) -> None:
        await person.sees("Your turn")
        if resumed:
            person.do("leave")
            await person.sees("Saved tables (1)")
            person.do("resume", "0")
            await person.sees("Your turn")
        await person.play(lambda: person.room.table.game_over and person.room.is_quiet)
        person.do("leave")
        await person.sees("Saved tables (0)")

    meet(script, "game=sette_mezzo", "seed=3")
    assert not list(Path().glob("saves/*"))


def test_the_menu_chooses_games_settings_and_language() -> None:
    async def script(person: Person) -> None:
        await person.sees("Opponents")
        person.do("game", "spike")
        await person.sees("Ante")
        person.do("set", "4", "game.seats")
        person.do("set", "a few", "game.ante")
        assert "ante" in person.text.split("✗")[1]
        person.do("set", "…", "game.ante")
        assert '<input data-do="set" data-key="game.ante"' in person.html
        person.do("set", "6", "game.ante")
        person.do("set", "1", "no.such")
        person.do("language", "it")
        assert "Avversari" in person.text
        person.do("play")
        await person.sees("Tocca a te")
        assert person.html.count(" crediti</span>") == 4

    meet(script)


def test_a_wrong_setting_is_told_in_the_menu() -> None:
    async def script(person: Person) -> None:
        await person.sees("Opponents")
        person.do("set", "nobody", "opponents")
        person.do("play")
        await person.sees("✗ opponents: nobody")

    meet(script)


def test_what_a_file_contains_is_text() -> None:
    """Names in a record and in a save can neither bring elements into the page nor control characters."""
    nasty = "<img src=x onerror=alert(1)>\x1b[2J"

    async def script(person: Person) -> None:
        await person.sees("Your turn")
        await person.play(lambda: person.room.table.game_over and person.room.is_quiet)
        record = json.loads(Path("games.jsonl").read_text()) | {"names": [nasty, "b", "c", "d"]}
        Path("named.jsonl").write_text(json.dumps(record) + "\n")
        person.do("leave")
        await person.sees("Opponents")
        person.do("file", "named.jsonl")
        await person.sees("Watching")
        person.do("pause")
        assert "<img" not in person.html and "\x1b" not in person.html
        assert "&lt;img src=x onerror=alert(1)&gt;" in person.html
        for what, value in (
            ("step", ""),
            ("step_back", ""),
            ("open", ""),
            ("bars", ""),
            ("seat", "2"),
            ("next_hand", ""),
        ):
            await person.until(lambda: not person.desk.room.thinking)
            person.do(what, value)
        await person.sees("No more hands")
        person.do("leave")
        await person.sees("Opponents")
        Path("saves").mkdir(exist_ok=True)
        Path(f"saves/{'<b>'}.json").write_text("{}")
        person.desk.menu.look_for_saves()
        await person.sees("cannot be used")
        assert "<b>.json" not in person.html

    meet(script, "game=tressette", "seed=7", "record=games.jsonl")


@pytest.mark.parametrize("game", ["tressette", "spike", "blackjack", "sette_mezzo"])
def test_agents_are_watched_hand_by_hand(game: str) -> None:
    async def script(person: Person) -> None:
        await person.until(lambda: person.desk.room is not None)
        room = person.desk.room
        person.do("bars")  # no values, which take time
        await person.until(lambda: room.games.number > 0)
        person.do("pause")
        await person.until(lambda: not room.thinking)
        number = room.games.number
        person.do("previous_hand")
        await person.until(lambda: room.games.number == number - 1)
        person.do("open")
        assert person.html

    meet(script, f"game={game}", "watch=agents", "seed=5", *(["hands=1"] if game == "spike" else []))


def test_two_people_share_a_page_and_see_their_own_cards_only() -> None:
    async def script(person: Person) -> None:
        await person.sees("let no one else look")
        assert 'class="held' not in person.html
        person.do("choose", str(person.room.table.hand.legal[0]))
        assert not person.room.table.hand.moves
        person.do("next")
        await person.until(person.room.legal)
        assert person.html.count('class="held') == 10
        person.do("choose", str(person.room.table.hand.legal[0]))
        await person.sees("let no one else look")
        assert 'class="held' not in person.html

    meet(script, "game=tressette", "opponents=[human,human]", "partner=human", "seed=1")


def test_blackjack_learns_plays_itself_and_takes_other_rules() -> None:
    async def script(person: Person) -> None:
        await person.until(lambda: person.desk.room is not None)
        for name in ("mc", "td", "ql"):
            person.do("learn", name)
        await person.until(lambda: person.html.count('class="plus"') > 60)
        person.do("quantity", "best")
        person.do("method", "mc")
        assert "MC: best action" in person.text
        person.do("autoplay")
        await person.until(lambda: person.room.table.score.games > 3)
        person.do("autoplay")
        await person.until(lambda: person.room.is_quiet)
        person.do("adjust")
        person.do("set", "many", "epsilon")
        person.do("apply")
        assert "epsilon" in person.text
        person.do("set", "0.2", "epsilon")
        person.do("set", "1", "decks")
        person.do("apply")
        await person.sees("New rules, new table")
        assert person.room.table.game.options.decks == 1

    meet(script, "game=blackjack", "seed=2")


def test_the_coach_of_sette_e_mezzo_judges_decisions() -> None:
    async def script(person: Person) -> None:
        await person.sees("Your turn")
        await person.play(lambda: person.room.table.number == 3)
        await person.until(lambda: person.room.is_quiet and "decisions 0" not in person.text)

    meet(script, "game=sette_mezzo", "seed=3")
