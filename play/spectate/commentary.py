"""What is said while one looks on at games: which hand, who is to move, what actions are worth, what lies face down."""

from __future__ import annotations

from cards.hand import Hand, Move
from evaluate.review.advisers import Worth
from play.language import Language, Message, message
from play.spectate.bars import bars
from play.spectate.watching import WatchedGames
from play.table.speech import Speech
from play.views import events, result


class Commentary:
    """Puts the place at which a `WatchedGames` is into lines."""

    def __init__(self, language: Language, speech: Speech, watch: WatchedGames) -> None:
        self._language, self._speech, self._watch = language, speech, watch

    @property
    def may_know(self) -> bool:
        """Whether what the seat to move thinks may be shown."""
        return self._watch.shows_hands or self._watch.table.turn in (None, self._watch.viewer)

    def title(self) -> str:
        """The game, who plays, which hand, and the score of a match."""
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
        """Who is to move, and how one looks on."""
        say, watch, hand = self._language.say, self._watch, self._watch.table.hand
        here = say("watch.hand_over") if hand.over else say("watch.to_move", move=len(hand.moves) + 1, seat=hand.turn)
        how = say("watch.playing", pace=f"{watch.pace:g}") if watch.playing else say("watch.paused")
        hands = say("watch.shown" if watch.shows_hands else "watch.closed")
        return " · ".join((here, how, hands, say("watch.looks_from", seat=watch.viewer)))

    def happened(self, move: Move) -> list[str]:
        """What everybody saw happen with a move of the hand."""
        return self._speech.lines(events(self._watch.table.hand, move))

    def ended(self) -> list[str]:
        """What the hand came to; nothing before it is over."""
        hand = self._watch.table.hand
        return self._speech.lines(result(hand)) if hand.over else []

    def hands(self, width: int) -> list[str]:
        """What lies face down, two seats beside each other where they fit; nothing while the hands are closed."""
        if not self._watch.shows_hands:
            return []
        lines = self._speech.lines(open_hands(self._watch.table.hand))
        half = width // 2
        if max(map(len, lines), default=0) >= half:
            return lines
        return [" ".join(f"{line:<{half - 1}}" for line in lines[k : k + 2]).rstrip() for k in range(0, len(lines), 2)]

    def values(self, found: tuple[str, list[Worth]] | None, width: int) -> list[str]:
        """What the actions are worth, as `WatchedGames.worths` found it; None while it is not known yet."""
        say, turn = self._language.say, self._watch.table.turn
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
        head = say("watch.values", seat=turn, unit=self._language.texts[f"unit.{unit}"])
        return [head, *bars(worths, unit, self._speech.action, played, width)]


def open_hands(hand: Hand) -> list[Message]:
    """The cards of every seat now, a message for each; none where nothing is hidden, or the game is not known here."""
    shown = {"tressette": _tressette, "spike": _spike, "blackjack": _blackjack}.get(hand.game.name)
    return shown(hand) if shown is not None else []


def _tressette(hand: Hand) -> list[Message]:
    from play.views.tressette import by_suit

    held = [by_suit(int(cards)) for cards in hand.state[0]["hands"]]
    return [_seat(seat, [card for suit in suits for card in suit]) for seat, suits in enumerate(held)]


def _spike(hand: Hand) -> list[Message]:
    from spike.cards import VALUES

    state = hand.state[0]
    players = range(int(state["players"]))
    playing = [seat for seat in players if int(state["in_hand"]) >> seat & 1]
    return [_seat(seat, [f"{int(VALUES[card]):+d}" for card in state["hands"][seat]]) for seat in playing]


def _blackjack(hand: Hand) -> list[Message]:
    cards = hand.record()["dealer"]
    return [message("watch.hole", cards=" ".join(cards if hand.over else cards[:2]))]


def _seat(seat: int, cards: list[str]) -> Message:
    return message("watch.seat", seat=seat, cards=" ".join(cards) or "-")
