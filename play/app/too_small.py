"""Screen shown while the terminal is too small for the others."""

from textual.app import RenderResult
from textual.widget import Widget

from busso.play.language import Language

LEAST_WIDTH, LEAST_HEIGHT = 80, 24  # the smallest terminal in which every screen fits


class TooSmall(Widget):
    """Cover of a screen while the terminal is too small; not a screen, so that those below continue to work."""

    def __init__(self, language: Language) -> None:
        super().__init__()
        self._language = language

    def render(self) -> RenderResult:
        size = self.app.size
        wanted = {"width": LEAST_WIDTH, "height": LEAST_HEIGHT}
        return self._language.say("app.too_small", **wanted, columns=size.width, rows=size.height)
