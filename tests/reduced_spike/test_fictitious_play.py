"""Averages of past best responses become ever less exploitable, the last of them does not: exactly, in miniature."""

from itertools import pairwise

from tests.reduced_spike.fictitious_play import Pair, respond
from tests.reduced_spike.sequence_form import SequenceForm
from tests.reduced_spike.test_exact_response import certain, small_form


def start(form: SequenceForm) -> Pair:
    first, second = (form.plan(seat, form.choices(seat, certain("cautious"))) for seat in (0, 1))
    return first, second


def test_the_average_of_fictitious_play_falls_and_its_last_policy_does_not() -> None:
    form = small_form()
    rows = respond(form, start(form), 20, to_all=True)
    average, last = ([row[name] for row in rows] for name in ("all", "last 1"))
    assert average[0] == last[0] > 0.5
    assert all(later < earlier for earlier, later in pairwise(average)) and average[-1] < 0.4 * average[0]
    assert max(last) > 1.5 * last[0] and sum(a < b for a, b in zip(average, last, strict=True)) > 15


def test_who_responds_to_the_newest_alone_goes_round_in_circles() -> None:
    """A mixture of the last few is less exploitable than any of them, but no equilibrium comes of it."""
    form = small_form()
    rows = respond(form, start(form), 12, to_all=False)
    assert min(row["last 1"] for row in rows[2:]) > 1.5 * rows[0]["last 1"]
    for row in rows[7:]:
        assert row["last 8"] < row["last 4"] < row["last 2"] < row["last 1"]
        assert row["all"] > 0.7
