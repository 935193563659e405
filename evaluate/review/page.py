"""Review as one self-contained HTML page, with light and dark styles and a print layout."""

import base64
import hashlib
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from busso.base.terminal import visible
from busso.evaluate.recorded import InvalidRecord
from busso.evaluate.review.advisers import GRADES
from busso.evaluate.review.drawing import graph, rounds, shares
from busso.evaluate.review.grader import Reviewed, ReviewedHand, Tally
from busso.evaluate.review.settings import SUMMARY
from busso.evaluate.review.text import cost_text, heading, method, shown, value_text

_TEMPLATE = Path(__file__).with_name("page.html.j2")
_WIDTH, _HEIGHT, _TOP = 720, 150, 10  # of a graph and its margin, in pixels
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
        shares=shares,
        suit_of=_suit_of,
        rounds=rounds,
        graph=graph,
        width=_WIDTH,
        height=_HEIGHT,
        top=_TOP,
        whose=lambda hand, seats: " and ".join(dict.fromkeys(map(hand.who, seats))),
    )
    return visible(found)


def _share(tally: Tally, grade: str) -> float:
    return 100 * tally.grades[grade] / tally.decisions if tally.decisions else 0.0


def _suit_of(card: str) -> str:
    """Return the CSS class of a Tressette card by suit; empty for other actions."""
    return _SUITS[card[-1]] if len(card) == 2 and card[-1] in _SUITS and card[0] in "4567FCRA23" else ""
