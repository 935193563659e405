"""The value table with what the learners have come to, and a button for all that can be done with them."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.widgets import Static

from play.app.screens.blackjack_table import ValueTable
from play.blackjack_lab.learning import METHODS, Progress
from play.blackjack_lab.lesson_speech import caption_text, legend, mark, quantity_text, speed_text, stats
from play.blackjack_lab.lessons import Lessons
from play.blackjack_lab.value_table import Block, block, summed
from play.language import Language

_KEYS = dict(zip(METHODS, "mdl", strict=True))


class Lab(Vertical):
    """One method's table, hard and soft sums, and a line for each method."""

    def __init__(self, language: Language) -> None:
        super().__init__(id="lab")
        self._language = language
        self._drawn: tuple[Progress | None, str] = (None, "")  # what the blocks are of
        self._blocks: dict[str, tuple[Block, Block]] = {}

    def compose(self) -> ComposeResult:
        """Caption, tables, lines."""
        yield Static(id="caption", markup=False)
        with Horizontal(id="tables"):
            yield ValueTable(self._language.say("blackjack_screen.hard"), id="hard")
            with Vertical(id="right"):
                yield ValueTable(self._language.say("blackjack_screen.soft"), id="soft")
                yield Static(id="lines", markup=False)
                yield Static(id="legend", markup=False)

    def show(
        self, lessons: Lessons, method: str, quantity: str, here: tuple[str, int, int] | None, said: list[str]
    ) -> None:
        """Show that quantity of that method's table; `here` is the block, row and column of the game in play.

        What was `said`, if anything, is there in place of the legend.
        """
        language = self._language
        self._set("#caption", f"{method.upper()}: {caption_text(language, quantity)}")
        self._set("#lines", stats(language, lessons))
        self._set("#legend", "\n".join(said) or legend(language, lessons.choices.policy))
        if (lessons[method].progress, quantity) != self._drawn:
            self._drawn = (lessons[method].progress, quantity)
            self._blocks = self._made(lessons[method].progress, quantity)
        for name, (first, second) in self._blocks.items():
            place = here[1:] if here is not None and here[0] == name else None
            self.query_one(f"#{name}", ValueTable).show(first, second, place)

    def _set(self, selector: str, text: str) -> None:
        self.query_one(selector, Static).update(text, layout=False)  # its height is fixed: this comes all the time

    def _made(self, progress: Progress | None, quantity: str) -> dict[str, tuple[Block, Block]]:
        """Of the hard and the soft sums what is shown, and what is below it where there is room."""
        say = self._language.say
        letters = (say("blackjack_screen.letter_stand"), say("blackjack_screen.letter_hit"))
        cells = None if progress is None else summed(progress)
        shown = (quantity, "value" if quantity == "best" else "best")
        found = {}
        for name in ("hard", "soft"):
            first, second = (block(cells, name, each, letters) for each in shown)
            found[name] = (first, second)
        return found


class Chip(Static):
    """A button as wide as its text, that takes no focus: Enter is for the next game. Each has a key, too."""

    def __init__(self, name: str, action: str) -> None:
        super().__init__(id=name, markup=False, classes="chip")
        self._action, self._shown = f"screen.{action}", ""

    def show(self, text: str) -> None:
        """Name it: its key, and what it does or how things are."""
        if text != self._shown:
            self._shown = text
            key, _, rest = text.partition(" ")
            self.update(Content.assemble((key, "bold"), " ", rest))

    async def on_click(self) -> None:
        """Do it."""
        await self.run_action(self._action)


class LearnBar(Horizontal):
    """What starts and pauses the methods, and says what is shown."""

    def __init__(self, language: Language) -> None:
        super().__init__(id="learn")
        self._language = language

    def compose(self) -> ComposeResult:
        """A row of chips."""
        for name in METHODS:
            yield Chip(name, f"learn('{name}')")
        yield Chip("autoplay", "autoplay")
        yield Chip("method", "next_method")
        yield Chip("quantity", "next_quantity")
        yield Chip("speed", "next_speed")
        yield Chip("reset", "reset")
        yield Chip("adjust", "adjust")
        yield Chip("flip", "flip")

    def show(self, lessons: Lessons, method: str, quantity: str, autoplay: bool, flipped: bool) -> None:
        """Name the chips after how things are."""
        say = self._language.say
        texts = {name: f"{_KEYS[name]} {mark(lessons[name])}{name.upper()}" for name in METHODS}
        texts |= {
            "autoplay": f"a {'●' if autoplay else '○'}Auto",
            "method": f"c {method.upper()}",
            "quantity": f"x {quantity_text(self._language, quantity)}",
            "speed": f"f {speed_text(self._language, lessons.choices.speed)}",
            "reset": f"r {say('blackjack_screen.reset')}",
            "adjust": f"e {say('blackjack_screen.adjust')}",
            "flip": f"b {say('blackjack_screen.cards') if flipped else say('blackjack_screen.table')}",
        }
        for name, text in texts.items():
            self.query_one(f"#{name}", Chip).show(text)
