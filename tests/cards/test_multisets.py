import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from busso.cards.multisets import draw_until, multisets


@given(st.lists(st.integers(1, 6), min_size=1, max_size=4), st.integers(0, 14))
@settings(max_examples=40, deadline=None)
def test_all_multisets_once_and_before_those_that_contain_them(values: list[int], max_total: int) -> None:
    sets = multisets(values, max_total)
    wanted = {held for held in product(range(max_total + 1), repeat=len(values)) if np.dot(held, values) <= max_total}
    assert {tuple(held) for held in sets.counts.tolist()} == wanted and len(sets.counts) == len(wanted)
    assert not sets.counts[0].any()
    for held, (total, size) in enumerate(zip(sets.total, sets.size, strict=True)):
        assert total == np.dot(sets.counts[held], values) and size == sets.counts[held].sum()
        for kind, more in enumerate(sets.child[held]):
            if total + values[kind] > max_total:
                assert more == -1
            else:
                assert more > held and (sets.counts[more] - sets.counts[held] == np.eye(len(values))[kind]).all()


def brute_force(
    values: list[int], max_total: int, held: tuple[int, ...], deck: tuple[int, ...], stop: int, replaced: bool
) -> dict[tuple[int, ...], Fraction]:
    """Return the final sums with probabilities, over all card orders; the empty tuple means bust."""
    total = sum(n * v for n, v in zip(held, values, strict=True))
    if total > max_total:
        return {(): Fraction(1)}
    if total >= stop or sum(deck) == 0:
        return {held: Fraction(1)}
    out: dict[tuple[int, ...], Fraction] = {}
    for kind in range(len(values)):
        if deck[kind]:
            more = tuple(n + (k == kind) for k, n in enumerate(held))
            left = deck if replaced else tuple(n - (k == kind) for k, n in enumerate(deck))
            for end, chance in brute_force(values, max_total, more, left, stop, replaced).items():
                out[end] = out.get(end, Fraction(0)) + chance * Fraction(deck[kind], sum(deck))
    return out


@pytest.mark.parametrize("replaced", [False, True])
@pytest.mark.parametrize(("deck", "stop"), [((2, 1, 3), 6), ((1, 0, 2), 9), ((0, 1, 1), 8), ((4, 4, 4), 7)])
def test_draw_until_follows_every_order(deck: tuple[int, ...], stop: int, replaced: bool) -> None:
    values, max_total = [1, 2, 4], 9
    sets = multisets(values, max_total)
    ended = np.empty(len(sets.total))
    start = int(sets.child[0, 1])
    past = draw_until(sets, start, sets.total >= stop, np.array(deck, float), replaced, ended)
    wanted = brute_force(values, max_total, (0, 1, 0), deck, stop, replaced)
    assert math.isclose(past, wanted.pop((), Fraction(0)), abs_tol=1e-14)
    found = {tuple(sets.counts[k].tolist()): ended[k] for k in np.flatnonzero(ended)}
    assert found.keys() == wanted.keys()
    assert all(math.isclose(found[end], wanted[end], abs_tol=1e-14) for end in wanted)
