"""Review as text of at most 80 columns."""

import textwrap
from collections.abc import Iterator, Sequence

from busso.evaluate.recorded import InvalidRecord
from busso.evaluate.review.advisers import BLUNDER, FINE, GRADES, MISTAKE, ActionValue
from busso.evaluate.review.grader import Decision, Reviewed, ReviewedHand, Tally
from busso.evaluate.review.settings import MISTAKES, SUMMARY

WIDTH = 80
_BAD = (MISTAKE, BLUNDER)


def text(reviewed: Sequence[Reviewed], summary: Sequence[Tally], show: str) -> Iterator[str]:
    """Yield the lines: every hand with its decisions, boards of mistakes and blunders, and the summary."""
    if show != SUMMARY:
        for each in reviewed:
            yield from _damaged(each) if isinstance(each, InvalidRecord) else _hand(each, show)
            yield ""
    yield from _summary(summary)
    for said in dict.fromkeys(method(each) for each in reviewed if isinstance(each, ReviewedHand)):
        yield ""
        yield from textwrap.wrap(said, WIDTH)


def _damaged(damaged: InvalidRecord) -> list[str]:
    return textwrap.wrap(f"line {damaged.line}: {damaged.error}", WIDTH, subsequent_indent="  ")


def heading(reviewed: ReviewedHand) -> str:
    """Return the heading of a hand: its place in the file."""
    recorded = reviewed.recorded
    part = f", hand {recorded.part} of {recorded.parts}" if recorded.parts > 1 else ""
    score = f", at {' to '.join(map(str, recorded.before))} in a match to {recorded.to}" if recorded.before else ""
    names = reviewed.recorded.names
    seated = ": " + ", ".join(f"{seat} {name}" for seat, name in enumerate(names)) if names else ""
    return f"line {recorded.line}, {reviewed.hand.game.name}{part}{score}{seated}"


def shown(show: str, reviewed: ReviewedHand) -> list[Decision]:
    """Return the decisions of a hand that the setting `show` selects."""
    return [each for each in reviewed.decisions if show != MISTAKES or each.grade in _BAD]


def _hand(reviewed: ReviewedHand, show: str) -> Iterator[str]:
    yield from textwrap.wrap(heading(reviewed), WIDTH, subsequent_indent="  ")
    chosen = shown(show, reviewed)
    if not chosen:
        yield "  " + ("no mistakes" if reviewed.decisions else "no decisions: no seat had a choice")
        return
    yield f"  {'move':>4} {'seat':>4}  {'played':<14}{'grade':<9}{'cost':>7}  better"
    for each in chosen:
        yield _line(reviewed, each).rstrip()
        if each.grade in _BAD:
            for row in each.board:
                yield from _wrapped(row.label, row.text)
            worths = ", ".join(worth_text(reviewed, worth) for worth in each.judged.worths)
            yield from _wrapped("worth", worths)


def _line(reviewed: ReviewedHand, decision: Decision) -> str:
    judged = decision.judged
    cost = "?" if judged.cost is None else cost_text(reviewed.grader.unit, judged.cost)
    better = ""
    if judged.best.action != judged.action and decision.grade != GRADES[0]:
        better = worth_text(reviewed, judged.best)
    played, grade = reviewed.action(judged.action), decision.grade or "unknown"
    return f"  {judged.number:>4} {judged.seat:>4}  {played:<14}{grade:<9}{cost:>7}  {better}"


def _wrapped(label: str, said: str) -> list[str]:
    head = f"            {label:<12} "
    return textwrap.wrap(said, WIDTH, initial_indent=head, subsequent_indent=" " * len(head))


def value_text(unit: str, value: float | None) -> str:
    """Format a value in its unit; `?` if unknown."""
    if value is None:
        return "?"
    return f"{value:.2f}" if unit == "points" else f"{value:+.2f}" if unit == "credits" else f"{value:+.3f}"


def cost_text(unit: str, cost: float) -> str:
    """Format a cost in its unit."""
    return f"{max(0.0, cost):.{2 if unit in ('points', 'credits') else 3}f}"


def worth_text(reviewed: ReviewedHand, worth: ActionValue) -> str:
    """Format an action with its value."""
    return f"{reviewed.action(worth.action)} {value_text(reviewed.grader.unit, worth.value)}"


def _summary(summary: Sequence[Tally]) -> Iterator[str]:
    yield f"{'summary':<25}{'hands':>6}{'graded':>8}" + "".join(f"{grade:>8}" for grade in GRADES) + f"{'lost':>8}"
    games = {tally.game for tally in summary}
    for tally in summary:
        who = f"{tally.game}, {tally.who}" if len(games) > 1 else tally.who
        numbers = "".join(f"{tally.grades[grade]:>8}" for grade in GRADES)
        lost = cost_text(tally.unit, tally.lost_per_hand)
        yield f"{textwrap.shorten(who, 24, placeholder='…'):<25}{tally.hands:>6}{tally.decisions:>8}{numbers}{lost:>8}"
    units = ", ".join(dict.fromkeys(tally.unit for tally in summary))
    yield f"lost: {units} a hand by what was not the best"
    if missing := sum(tally.unknown for tally in summary):
        yield f"not graded, because their values are unknown: {missing} decisions"


def method(reviewed: ReviewedHand) -> str:
    """Describe the grading of a game: the adviser, its information, and the limits of the grades."""
    game, grader, limits = reviewed.hand.game.name, reviewed.grader, reviewed.grader.limits
    on = "all hands as they were, which no seat could know" if grader.cheats else "what the seat knew"
    grades = f"best up to {limits.best:g}, {FINE} to {limits.fine:g}, {MISTAKE} to {limits.mistake:g}"
    return f"{game}: graded by {grader.name} on {on}; {grades} {grader.unit}"
