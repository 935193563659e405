"""Cards of Blackjack on the table: ranks alone, since suits do not matter."""

from __future__ import annotations

from textual.widgets import Static

_WIDTH = 5
HIDDEN = "░░░"


class Cards(Static):
    """A row of cards; where there is no room for the row they are told in one line."""

    def __init__(self, id: str) -> None:  # noqa: A002 - as Textual calls it
        super().__init__(id=id, markup=False, classes="cards")

    def show(self, cards: tuple[str, ...]) -> None:
        """Show these ranks."""
        if len(cards) * _WIDTH > max(self.size.width, _WIDTH * 8):
            self.update("\n" + " ".join(cards))
            return
        middle = ["│" + (card if card == HIDDEN else f"{card:^3}") + "│" for card in cards]
        self.update("\n".join(("".join(["╭───╮"] * len(cards)), "".join(middle), "".join(["╰───╯"] * len(cards)))))
