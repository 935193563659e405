"""Review as one self-contained HTML page, with light and dark styles and a print layout."""

import base64
import hashlib
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from busso.base.terminal import visible
from busso.evaluate.recorded import InvalidRecord
from busso.evaluate.review.advisers import GRADES, ActionValue, Evaluation
from busso.evaluate.review.grader import Decision, Reviewed, ReviewedHand, Tally
from busso.evaluate.review.settings import SUMMARY
from busso.evaluate.review.text import cost_text, heading, method, shown, value_text

_TEMPLATE = Path(__file__).with_name("page.html.j2")
_WIDTH, _HEIGHT = 720, 150  # of a graph, in pixels
# Everything opens for the printer, what a link leads to opens, and n and p go to the next and the previous mistake.
_SCRIPT = """
const all = (chosen) => [...document.querySelectorAll(chosen)];
addEventListener("beforeprint", () => all("details").forEach((each) => { each.open = true; }));
const show = () => {
  const chosen = location.hash && document.getElementById(location.hash.slice(1));
  if (chosen) { chosen.open = true; chosen.scrollIntoView({ block: "center" }); }
};
addEventListener("hashchange", show);
show();
const go = (step) => {
  const bad = all(".mistake[id], .blunder[id]").map((each) => each.id), here = bad.indexOf(location.hash.slice(1));
  const next = here < 0 && step < 0 ? -1 : here + step;
  if (bad.length) location.hash = bad.at(next % bad.length);
};
all("[data-step]").forEach((each) => each.addEventListener("click", () => go(Number(each.dataset.step))));
addEventListener("keydown", (event) => { if (event.key === "n") go(1); else if (event.key === "p") go(-1); });
"""
_SUITS = {"D": "denari", "C": "coppe", "S": "spade", "B": "bastoni"}


def page(reviewed: Sequence[Reviewed], summary: Sequence[Tally], show: str, title: str) -> str:
    """Return the page."""
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    hands = [each for each in reviewed if isinstance(each, ReviewedHand)]
    found = environment.from_string(_TEMPLATE.read_text(encoding="utf-8")).render(
        title=title,
        script=Markup(_SCRIPT),
        script_hash=base64.b64encode(hashlib.sha256(_SCRIPT.encode()).digest()).decode(),
        grades=GRADES,
        summary=summary,
        hands=hands if show != SUMMARY else [],
        damaged=[each for each in reviewed if isinstance(each, InvalidRecord)],
        methods=list(dict.fromkeys(map(method, hands))),
        cost=cost_text,
        heading=heading,
        shown=partial(shown, show),
        value=value_text,
        share=_share,
        bar=_bar,
        suit_of=_suit_of,
        rounds=_rounds,
        graph=_graph,
        width=_WIDTH,
        height=_HEIGHT,
    )
    return visible(found)


class DrawnAction(NamedTuple):
    """Action as drawn: its text, its number from 1, and its grade, None for a forced or unknown one."""

    seat: int
    text: str
    number: int
    grade: str | None


def _rounds(hand: ReviewedHand) -> list[list[DrawnAction]]:
    """Return the actions of a hand in rounds, in which no seat acts twice: the tricks of Tressette."""
    grades = {each.judged.number: each.grade for each in hand.decisions}
    found: list[list[DrawnAction]] = []
    for number, move in enumerate(hand.hand.moves, 1):
        if not found or move.seat in {each.seat for each in found[-1]}:
            found.append([])
        found[-1].append(DrawnAction(move.seat, hand.action(move.action), number, grades.get(number)))
    return found


class ValueLine(NamedTuple):
    """Values of one side's choices over a hand: for each decision its place in the graph and the decision."""

    label: str
    points: list[tuple[float, float, Decision]]


def _graph(hand: ReviewedHand) -> tuple[float, float, list[ValueLine]]:
    """Return the least and the greatest value of a played action, and a line for each side."""
    played = [
        (each, next(worth.value for worth in each.judged.worths if worth.action == each.judged.action))
        for each in hand.decisions
    ]
    known = [(each, value) for each, value in played if value is not None]
    values = [value for _, value in known]
    low, high = min(values, default=0.0), max(values, default=0.0)
    across, up = _WIDTH / max(1, len(hand.hand.moves)), (_HEIGHT - 20) / (high - low or 1.0)
    lines = []
    for team in hand.hand.game.teams:
        names = dict.fromkeys(hand.who(seat) for seat in team)
        own = [(each, value) for each, value in known if each.judged.seat in team]
        points = [((each.judged.number - 0.5) * across, 10 + (high - value) * up, each) for each, value in own]
        lines += [ValueLine(" and ".join(names), points)] if points else []
    return low, high, lines


def _share(tally: Tally, grade: str) -> float:
    return 100 * tally.grades[grade] / tally.decisions if tally.decisions else 0.0


def _bar(judged: Evaluation, worth: ActionValue) -> float:
    """Return the length of a value's bar, from 5 for the least of the decision's values to 100."""
    values = [each.value for each in judged.worths if each.value is not None]
    return 5 + 95 * ((worth.value or 0.0) - min(values)) / (max(values) - min(values) or 1.0)


def _suit_of(card: str) -> str:
    """Return the CSS class of a Tressette card by suit; empty for other actions."""
    return _SUITS[card[-1]] if len(card) == 2 and card[-1] in _SUITS and card[0] in "4567FCRA23" else ""
