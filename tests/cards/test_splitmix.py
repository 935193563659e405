"""splitmix64 against published numbers, and guarantees of its streams."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from busso.cards.compiled.splitmix import below, below_wide, derive, stream, uniform

SEEDS = st.integers(0, 2**64 - 1)
# First outputs for the seed 1234567, as in the test suites of several implementations (Rosetta Code, "Pseudo-random
# numbers/Splitmix64").
PUBLISHED = [
    6457827717110365317,
    3203168211198807973,
    9817491932198370423,
    4593380528125082431,
    16408922859458223821,
]


def test_published_numbers() -> None:
    # A stream without a name starts at the seed.
    assert stream(1234567, "", 0, 5).tolist() == PUBLISHED


@given(SEEDS, st.integers(0, 2**40), st.integers(0, 20), st.integers(0, 20))
def test_a_stream_is_the_same_however_it_is_cut(seed: int, first: int, left: int, right: int) -> None:
    whole = stream(seed, "episodes", first, left + right)
    parts = [stream(seed, "episodes", first, left), stream(seed, "episodes", first + left, right)]
    assert np.array_equal(whole, np.concatenate(parts))


def test_streams_of_other_names_and_seeds_share_nothing() -> None:
    streams = [stream(seed, name, 0, 1000) for seed in (1, 2, -1) for name in ("episodes", "evaluation", "")]
    assert np.unique(np.concatenate(streams)).size == 9_000


@given(SEEDS, st.integers(1, 2**32 - 1))
def test_below(bits: int, n: int) -> None:
    number = int(below(np.uint64(bits), n))
    assert 0 <= number < n
    assert number == (bits >> 32) * n >> 32


@given(SEEDS, st.integers(1, 2**64 - 1))
def test_below_wide(bits: int, n: int) -> None:
    assert int(below_wide(np.uint64(bits), np.uint64(n))) == bits * n >> 64


@given(SEEDS)
def test_uniform(bits: int) -> None:
    assert uniform(np.uint64(bits)) == (bits >> 11) / 2**53
    assert 0 <= uniform(np.uint64(bits)) < 1


@pytest.mark.parametrize("size", [0, 1, 3])
def test_derive_depends_on_seed_and_salt_alone(size: int) -> None:
    seeds = stream(3, "games", 0, size)
    assert derive(seeds, 1).tolist() == [int(derive(seeds[k : k + 1], 1)[0]) for k in range(size)]
    assert not np.any(derive(seeds, 1) == derive(seeds, 2))
