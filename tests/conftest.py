"""Settings of all tests."""

from collections.abc import Iterator

import pytest
import torch
from hypothesis import settings

from tests.chips import CHIPS, Chip, forced

# Compiled functions take their time at the first call, and shared machines at any.
settings.register_profile("busso", deadline=None, derandomize=True)
settings.load_profile("busso")
# Two threads wait for each other where another process has one of the cores.
torch.set_num_threads(1)


@pytest.fixture(params=CHIPS)
def chip(request: pytest.FixtureRequest) -> Iterator[Chip]:
    """A test that asks for it runs once on every kind of CPU."""
    with forced(request.param) as found:
        yield found
