"""`python -m tests.reduced_spike.fictitious_play`: how exploitable are policies that best respond to past ones?

On the reduced Spike, with exact best responses from the sequence form. Needs PYTHONPATH=tests/reduced_spike. In each
round both seats find the best response to the other's past: to the average of all of it (fictitious play, Brown, 1951;
its average approaches an equilibrium: Robinson, 1951), or to the newest policy alone, as pure self-play does. One game
in fifty the other plays at random, as players that learn explore: so there is a best response in every situation. What
is measured is NashConv, the sum of what the two best responses against a pair of policies win.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tests.reduced_spike.exact_response import Uniform
from tests.reduced_spike.sequence_form import Floats, SequenceForm

Pair = tuple[Floats, Floats]
LAST = (1, 2, 4, 8)
EXPLORED = 0.02  # of the games


def mean(pairs: Sequence[Pair]) -> Pair:
    """One of the pairs is drawn at the beginning of each game: as plans, their mean."""
    first, second = (sum(plans[1:], plans[0].astype(np.float64)) / len(pairs) for plans in zip(*pairs, strict=True))
    return first, second


def explored(form: SequenceForm, pair: Pair) -> Pair:
    """The pair, that plays at random in a few of its games."""
    random = Uniform(form.width)
    first, second = (
        (1 - EXPLORED) * plan + EXPLORED * form.plan(seat, form.choices(seat, random)) for seat, plan in enumerate(pair)
    )
    return first, second


def respond(form: SequenceForm, start: Pair, rounds: int, to_all: bool) -> list[dict[str, float]]:
    """NashConv after each round, of the last so many policies (`last 1`, ...) and of the average of `all`.

    Each new pair responds to the average of all before it, or with not `to_all` to the newest.
    """
    past, sums, rows = [start], start, []
    for count in range(1, rounds + 1):
        everything = (sums[0] / count, sums[1] / count)
        row = {f"last {k}": form.nash_conv(*mean(past[-k:])) for k in LAST}
        rows.append(row | {"all": form.nash_conv(*everything)})
        against = explored(form, everything if to_all else past[-1])
        newest = (form.best(0, against[1])[1], form.best(1, against[0])[1])
        sums = (sums[0] + newest[0], sums[1] + newest[1])
        # One byte for each of millions of sequences: a best response plays each of them or does not.
        past = [*past, (newest[0].astype(np.uint8), newest[1].astype(np.uint8))][-max(LAST) :]
    return rows


def table(rows: Sequence[dict[str, float]], shown: Sequence[int]) -> str:
    """Markdown: a row for each of the rounds `shown`, counted from 1."""
    names = list(rows[0])
    lines = ["| round | " + " | ".join(names) + " |", "|---" * (1 + len(names)) + "|"]
    lines += [f"| {k} | " + " | ".join(f"{rows[k - 1][name]:.3f}" for name in names) + " |" for k in shown]
    return "\n".join(lines)


def main() -> None:
    """Print both tables."""
    from reduced_spike.rules import DEALS

    from busso.cards.game import load_game
    from busso.cards.players import named_player
    from tests.reduced_spike.exact_response import Certain

    game = load_game("reduced_spike")
    form = SequenceForm(game, game.deal(np.arange(DEALS, dtype=np.uint64)))
    cautious = Certain(named_player(game, "cautious"), game.actions)
    start = tuple(form.plan(seat, form.choices(seat, cautious)) for seat in (0, 1))
    for to_all, what in ((True, "the average of all before"), (False, "the newest alone")):
        rows = respond(form, (start[0], start[1]), 40, to_all)
        print(f"NashConv in credits a game; each policy is a best response to {what}\n")
        print(table(rows, (1, 2, 3, 4, 6, 8, 12, 16, 20, 30, 40)), "\n")


if __name__ == "__main__":
    main()
