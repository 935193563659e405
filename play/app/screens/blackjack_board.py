"""Board of Blackjack: cards, the learners' value table, and a button for every command."""

from rich.segment import Segment
from rich.style import Style
from textual.app import ComposeResult
from textual.color import Color
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.strip import Strip
from textual.widget import Widget
from textual.widgets import Static

from busso.play.app.board import Board
from busso.play.app.widgets.lines import Lines
from busso.play.blackjack_lab.learning import METHODS, TableSnapshot
from busso.play.blackjack_lab.lessons import Lessons, legend, mark, speed_text, stats
from busso.play.blackjack_lab.value_table import COLUMNS, Block, block, summed
from busso.play.language import Language
from busso.play.views.blackjack import LETTERS
from busso.play.views.small import SmallView

_HIDDEN = "░░░"
# The key of each command of the learners; that of a method starts or pauses it.
COMMANDS = dict(zip(METHODS, "mdl", strict=True)) | {
    "autoplay": "a",
    "next_method": "c",
    "next_quantity": "x",
    "next_speed": "f",
    "reset": "r",
    "adjust": "e",
    "flip": "b",
}
_LABEL = 4  # columns of the row labels
_NARROWEST, _WIDEST = 3, 6  # columns of a cell
_SHADES = 16  # colour strengths
_DEEPEST = 0.85
_BRIGHT = 0.45  # brightness of a background from which black contrasts more than white
_BOLD = Style(bold=True)


class ValueTable(Widget):
    """Hard or soft sums, the current one in reverse; tall cells have a second line. Rendered by line for speed."""

    def __init__(self, title: str, id: str) -> None:  # noqa: A002 - as Textual calls it
        super().__init__(id=id)
        self._title = title
        self.first = self._second = Block((), ())  # the displayed cells
        self._here: tuple[int, int] | None = None
        self._styles: dict[tuple[str, int, bool], Style] = {}

    def show(self, first: Block, second: Block, here: tuple[int, int] | None) -> None:
        """Show `first`, and `second` below it in tall cells; `here` is the current row and column."""
        if (first, second, here) != (self.first, self._second, self._here):
            self.first, self._second, self._here = first, second, here
            self.refresh()

    def render_line(self, y: int) -> Strip:
        """Render the column heads, then one or two lines for each sum."""
        width = max(_NARROWEST, min(_WIDEST, (self.size.width - _LABEL) // len(COLUMNS)))
        ground = self.rich_style
        if y == 0:
            heads = "".join(f"{column:>3}".center(width) for column in COLUMNS)
            segments = [Segment(f"{self._title:<{_LABEL}}{heads}", ground + _BOLD)]
        else:
            tall = self.size.height >= 2 * len(self.first.sums) + 1
            row, second = divmod(y - 1, 2) if tall else (y - 1, 0)
            segments = self._row(row, bool(second), width, ground)
        return Strip(segments).adjust_cell_length(self.size.width, ground)

    def _row(self, row: int, second: bool, width: int, ground: Style) -> list[Segment]:
        if row >= len(self.first.sums):
            return []
        label = " " * _LABEL if second else f"{self.first.sums[row]:>{_LABEL - 1}} "
        texts = (self._second if second else self.first).cells[row]
        # Both lines of a cell have the colour of the first.
        shades = self.first.cells[row]
        cells = [
            Segment(text.text.center(width), self._style(shade.shade, (row, column) == self._here))
            for column, (text, shade) in enumerate(zip(texts, shades, strict=True))
        ]
        return [Segment(label, ground + _BOLD), *cells]

    def _style(self, shade: float, here: bool) -> Style:
        key = (self.app.theme, round(max(-1.0, min(1.0, shade)) * _SHADES), here)
        if key not in self._styles:
            variables = self.app.theme_variables
            tint = Color.parse(variables["primary" if key[1] > 0 else "warning"])
            background = Color.parse(variables["surface"]).blend(tint, abs(key[1]) / _SHADES * _DEEPEST)
            foreground = Color.parse("black" if background.brightness > _BRIGHT else "white")
            style = Style(color=foreground.rich_color, bgcolor=background.rich_color)
            self._styles[key] = style + Style(bold=here, underline=here, reverse=here)
        return self._styles[key]


class Lab(Vertical):
    """Table of one method, hard and soft sums, and a line for each method."""

    def __init__(self, language: Language) -> None:
        super().__init__(id="lab")
        self._language = language
        self._drawn: tuple[TableSnapshot | None, str] = (None, "")  # the source of the blocks
        self._blocks: dict[str, tuple[Block, ...]] = {}

    def compose(self) -> ComposeResult:
        yield Lines(id="caption", markup=False)
        with Horizontal(id="tables"):
            yield ValueTable(self._language.say("blackjack_screen.hard"), id="hard")
            with Vertical(id="right"):
                yield ValueTable(self._language.say("blackjack_screen.soft"), id="soft")
                yield Lines(id="lines", markup=False)
                yield Lines(id="legend", markup=False)

    def show(
        self, lessons: Lessons, method: str, quantity: str, here: tuple[str, int, int] | None, said: list[str]
    ) -> None:
        """Show a quantity of a method's table; `here` is the current block, row, column; `said` replaces the legend."""
        language = self._language
        caption = language.say(f"blackjack_screen.caption_{quantity}", discount=lessons.settings["discount"])
        texts = {"caption": f"{method.upper()}: {caption}", "lines": stats(language, lessons)}
        texts["legend"] = "\n".join(said) or legend(language, lessons.choices.policy)
        for name, text in texts.items():
            self.query_one(f"#{name}", Static).update(text, layout=False)  # fixed height, frequent updates
        if (lessons[method].learned, quantity) != self._drawn:
            self._drawn = (lessons[method].learned, quantity)
            self._blocks = self._made(lessons[method].learned, quantity)
        for name, (first, second) in self._blocks.items():
            place = here[1:] if here is not None and here[0] == name else None
            self.query_one(f"#{name}", ValueTable).show(first, second, place)

    def _made(self, learned: TableSnapshot | None, quantity: str) -> dict[str, tuple[Block, ...]]:
        """Return the hard and the soft sums: the chosen quantity, and another for below it."""
        say = self._language.say
        letters = (say("blackjack_screen.letter_stand"), say("blackjack_screen.letter_hit"))
        cells = None if learned is None else summed(learned)
        shown = (quantity, "value" if quantity == "best" else "best")
        return {name: tuple(block(cells, name, each, letters) for each in shown) for name in ("hard", "soft")}


def action_of(name: str) -> str:
    """Return the screen's action for a command."""
    return f"learn('{name}')" if name in METHODS else name


class Chip(Lines):
    """Button as wide as its text that takes no focus: Enter is for the next game."""

    async def on_click(self) -> None:
        await self.run_action(f"screen.{action_of(self.id or '')}")


class LearnBar(Horizontal):
    """Buttons that start and pause the methods and choose the table shown."""

    def __init__(self, language: Language) -> None:
        super().__init__(id="learn")
        self._language = language

    def compose(self) -> ComposeResult:
        for name in COMMANDS:
            yield Chip(id=name, classes="chip")

    def show(self, lessons: Lessons, method: str, quantity: str, autoplay: bool, flipped: bool) -> None:
        """Update the chips to the current state: the key, then the command or its state."""
        say = self._language.say
        texts = {name: f"{mark(lessons[name])}{name.upper()}" for name in METHODS}
        texts |= {
            "autoplay": f"{'●' if autoplay else '○'}Auto",
            "next_method": method.upper(),
            "next_quantity": say(f"blackjack_screen.{quantity}"),
            "next_speed": speed_text(self._language, lessons.choices.speed),
            "reset": say("blackjack_screen.reset"),
            "adjust": say("blackjack_screen.adjust"),
            "flip": say("blackjack_screen.cards" if flipped else "blackjack_screen.table"),
        }
        for name, text in texts.items():
            self.query_one(f"#{name}", Chip).update(Content.assemble((COMMANDS[name], "bold"), " ", text))


class GameBoard(Board):
    """Cards of both sides and, for a person, the value table with the learners."""

    LETTERS = LETTERS
    ROOMY = (130, 56)  # size from which cards and table are shown together

    def compose(self) -> ComposeResult:
        with Vertical(id="play"):
            yield Lines(id="dealer", markup=False)
            yield Static(id="dealer_cards", markup=False, classes="cards")
            yield Lines(id="player", markup=False)
            yield Static(id="player_cards", markup=False, classes="cards")
            yield Lines(id="outcome", markup=False)
            yield Lines(id="counted", markup=False)
            if self.table.people:
                yield Lines(id="stats", markup=False)
        if self.table.people:
            yield Lab(self.language)

    def draw(self, seen: SmallView) -> None:
        say, counts = self.language.say, seen.other_counts
        dealer = "blackjack_screen.dealer" if counts is None else "blackjack_screen.dealer_open"
        player = "blackjack_screen.player_soft" if seen.soft else "blackjack_screen.player"
        self.set_texts(
            dealer=say(dealer, counts=counts, rule=seen.rule),
            dealer_cards=self._cards(seen.other + ((_HIDDEN,) if seen.outcome is None else ())),
            player=say(player, counts=seen.counts),
            player_cards=self._cards(seen.cards),
            outcome="" if seen.outcome is None else f"▶ {say(f'result.{seen.outcome}')}",
            counted=self.games_text("blackjack_screen.counted"),
        )

    def _cards(self, cards: tuple[str, ...]) -> str:
        """Draw a row of cards by rank; one that does not fit becomes a line."""
        if 5 * len(cards) > max(self.size.width, 40):
            return "\n" + " ".join(cards)
        middle = "".join(f"│{card:^3}│" for card in cards)
        return "\n".join(("╭───╮" * len(cards), middle, "╰───╯" * len(cards)))

    def set_texts(self, **texts: str) -> None:
        """Set widgets' texts without a new layout: their heights are fixed, and updates are frequent."""
        for name, text in texts.items():
            self.query_one(f"#{name}", Static).update(text, layout=False)
