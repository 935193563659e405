"""The keys with which one looks on at games, and the paces between which they choose."""

from __future__ import annotations

from textual.binding import Binding, BindingType

from play.app.keys import Key

PACES = (0.0, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4)  # seconds from move to move

WATCH_BINDINGS: list[BindingType] = [
    Binding("space", "pause", show=False, priority=True),
    Binding("right", "step", show=False, priority=True),
    Binding("left", "step_back", show=False, priority=True),
    Binding("plus,equals_sign", "faster", show=False),
    Binding("minus", "slower", show=False),
    Binding("n,enter", "next_hand", show=False, priority=True),
    Binding("p", "previous_hand", show=False),
    Binding("o", "open", show=False),
    Binding("b", "bars", show=False),
    Binding("s", "next_seat", show=False),
    *(Binding(str(seat), f"seat({seat})", show=False) for seat in range(8)),
    Binding("question_mark", "help", show=False),
    Binding("q,escape", "stand_up", show=False),
]

WATCH_KEYS: tuple[Key, ...] = (
    Key("Space", "pause", "watch.pause"),
    Key("←", "step_back"),
    Key("→", "step", "watch.step"),
    Key("-", "slower"),
    Key("+", "faster", "watch.pace"),
    Key("p", "previous_hand"),
    Key("n", "next_hand", "watch.hand"),
    Key("o", "open", "watch.open"),
    Key("b", "bars", "watch.bars"),
    Key("s", "next_seat", "watch.from"),
    Key("q", "stand_up", "watch.leave"),
)
