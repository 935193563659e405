"""Panel beside the trick of Tressette: points, the match, and public knowledge of each seat."""

from collections.abc import Sequence

from textual.content import Content

from busso.play.language import Language
from busso.play.views.tressette import TressetteView
from busso.play.views.trick import Trick, facts
from busso.tressette.rules import SEATS

_NAME = 25  # cells of a seat's number and name
Match = tuple[int, list[int]]  # target, and score by team


def panel(language: Language, seen: TressetteView, trick: Trick, names: Sequence[str], match: Match | None) -> Content:
    """Return the lines beside the trick; `names` are those of the seats."""
    ours = seen.seat % 2
    say = language.say
    key = "tressette_screen.last_trick" if trick.complete else "tressette_screen.trick"
    sides = say("tressette_screen.we"), say("tressette_screen.they")
    lines = [_row(say(key, number=trick.number), sides, "bold")]
    lines.append(_row(say("tressette_screen.points"), _sides(seen.points, ours)))
    lines.append(_row(say("tressette_screen.thirds"), _sides(seen.thirds, ours)))
    if match is not None:
        lines.append(_row(say("tressette_screen.match", to=match[0]), _sides(match[1], ours)))
    for k in range(SEATS):
        seat = (seen.seat + k) % SEATS
        lines += _seat(language, seen, seat, names[seat])
    return Content("\n").join(lines)


def _sides(numbers: Sequence[int], ours: int) -> tuple[str, str]:
    return str(numbers[ours]), str(numbers[1 - ours])


def _row(name: str, sides: tuple[str, str], style: str = "") -> Content:
    return Content.styled(f"{name:<22}{sides[0]:>6}{sides[1]:>7}", style)


def _seat(language: Language, seen: TressetteView, seat: int, name: str) -> list[Content]:
    cards = language.say("tressette_screen.cards", number=seen.cards_left[seat])
    turn = seen.turn == seat
    head = f"{'▶' if turn else ' '} {seat} {name}"
    head = head if len(head) <= _NAME else f"{head[: _NAME - 1]}…"
    lines = [Content.assemble((f"{head:<{_NAME + 1}}", "bold" if turn else ""), cards)]
    known = " · ".join(map(language.render, facts(seen, seat)))
    return [*lines, Content(f"    {known}")] if known or seat != seen.seat else lines


def result_lines(language: Language, seen: TressetteView, match: Match | None, game_over: bool) -> Content:
    """Describe the result of the hand, and the score of the match or its winner."""
    ours, say = seen.seat % 2, language.say
    mine, theirs = seen.points[ours], seen.points[1 - ours]
    lines = [(say("tressette_screen.hand_over", ours=mine, theirs=theirs), "bold")]
    if match is None:
        key = "tressette_screen.won" if mine > theirs else "tressette_screen.lost"
        return Content.assemble(*lines, (f"\n{say(key)}", "bold"))
    to, score = match
    key = "tressette_screen.match_on"
    if game_over:
        key = "tressette_screen.match_won" if score[ours] > score[1 - ours] else "tressette_screen.match_lost"
    told = say(key, to=to, ours=score[ours], theirs=score[1 - ours])
    return Content.assemble(*lines, "\n", (told, "bold reverse" if game_over else ""))
