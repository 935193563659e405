"""Commentary for spectators: the hand, the seat to move, the values of actions, the hidden cards."""

from collections.abc import Callable, Sequence

from busso.cards.hand import Move
from busso.evaluate.review.advisers import ActionValue
from busso.play.spectate.watching import WatchedGames
from busso.play.table.speech import Speech, value_text
from busso.play.views import events, open_hands, result

_EIGHTHS = " ▏▎▍▌▋▊▉█"
_LEAST, _MOST = 6, 24  # cells of a bar
NEXT = "▸"  # marks the next action


class Commentary:
    """Lines of text about the current position of a `WatchedGames`."""

    def __init__(self, speech: Speech, watch: WatchedGames) -> None:
        self._language, self._speech, self._watch = speech.language, speech, watch

    @property
    def may_know(self) -> bool:
        """True if the action values of the seat to move may be shown."""
        return self._watch.shows_hands or self._watch.table.hand.turn in (None, self._watch.viewer)

    def title(self) -> str:
        """Return the game, the players, the hand's title and the score of a match."""
        say, table = self._language.say, self._watch.table
        names = [name for name in table.setup.seats if name]
        who = names[:1] if len(set(names)) == 1 else names
        score = table.match_score
        standing = "" if score is None else say("watch.score", score=tuple(score), to=table.setup.match)
        parts = (
            self._language.game(table.game.name),
            ", ".join(who),
            self._language.render(self._watch.scene.title),
            standing,
        )
        return say("watch.title", game=" · ".join(part for part in parts if part))

    def prompt(self) -> str:
        """Return the prompt: the seat to move, and the keys of a spectator."""
        say, watch, hand = self._language.say, self._watch, self._watch.table.hand
        here = say("watch.hand_over") if hand.over else say("watch.to_move", move=len(hand.moves) + 1, seat=hand.turn)
        how = say("watch.playing", pace=f"{watch.pace:g}") if watch.playing else say("watch.paused")
        hands = say("watch.shown" if watch.shows_hands else "watch.closed")
        return " · ".join((here, how, hands, say("watch.looks_from", seat=watch.viewer)))

    def happened(self, move: Move) -> list[str]:
        """Describe a move of the hand as everybody saw it."""
        return self._speech.lines(events(self._watch.table.hand, move))

    def ended(self) -> list[str]:
        """Describe the result of the hand; empty before it is over."""
        hand = self._watch.table.hand
        return self._speech.lines(result(hand)) if hand.over else []

    def hands(self, width: int) -> list[str]:
        """List the hidden cards, two seats side by side where they fit; empty while the hands are closed."""
        if not self._watch.shows_hands:
            return []
        lines = self._speech.lines(open_hands(self._watch.table.hand))
        half = width // 2
        if max(map(len, lines), default=0) >= half:
            return lines
        return [" ".join(f"{line:<{half - 1}}" for line in lines[k : k + 2]).rstrip() for k in range(0, len(lines), 2)]

    def values(self, found: tuple[str, list[ActionValue]] | None, width: int) -> list[str]:
        """List the values of the actions, from `WatchedGames.worths`; None while they are unknown."""
        say, turn = self._language.say, self._watch.table.hand.turn
        if turn is None or not self._watch.shows_values:
            return []
        if not self.may_know:
            return [say("watch.hidden_values", seat=turn)]
        if found is None:
            return [say("watch.counting")]
        unit, worths = found
        if not worths:
            return [say("watch.no_values")]
        played = None if self._watch.following is None else self._watch.following.action
        head = say("watch.values", seat=turn, unit=self._language.texts.get(f"unit.{unit}", unit))
        return [head, *bars(worths, unit, self._speech.action, played, width)]


def bars(
    worths: Sequence[ActionValue], unit: str, name: Callable[[int], str], following: int | None, width: int
) -> list[str]:
    """Format actions in rows, best first down the columns, with bars of their values; `following` is marked."""
    if not worths:
        return []
    names = [name(each.action) for each in worths]
    values = [value_text(each.value, unit) for each in worths]
    texts = [
        f"{NEXT if each.action == following else ' '}{called:<{max(map(len, names))}} {value:>{max(map(len, values))}} "
        for each, called, value in zip(worths, names, values, strict=True)
    ]
    columns = min(len(texts), max(1, width // (len(texts[0]) + _LEAST + 1)))
    rows = -(-len(texts) // columns)
    columns = -(-len(texts) // rows)
    cells = min(_MOST, max(_LEAST, width // columns - len(texts[0]) - 1))
    shown = [text + _bar(share, cells) for text, share in zip(texts, _shares(worths), strict=True)]
    return [" ".join(shown[row::rows]).rstrip() for row in range(rows)]


def _shares(worths: Sequence[ActionValue]) -> list[float]:
    """Scale each value between the worst, 0, and the best, 1."""
    known = [each.value for each in worths if each.value is not None]
    low, high = min(known, default=0.0), max(known, default=0.0)
    if high - low < 1e-9:
        return [float(each.value is not None) for each in worths]
    return [0.0 if each.value is None else (each.value - low) / (high - low) for each in worths]


def _bar(share: float, cells: int) -> str:
    eighths = max(1, round(share * cells * 8))  # at least a sliver, to show where bars begin
    return ("█" * (eighths // 8) + _EIGHTHS[eighths % 8].strip()).ljust(cells)
