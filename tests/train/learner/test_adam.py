"""Adam: the numbers of torch.optim.Adam, bit for bit, and its checkpoints."""

import copy
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from busso.train.learner.adam import Adam


def parameters() -> list[Tensor]:
    made = torch.Generator().manual_seed(1)
    return [torch.randn(shape, generator=made).requires_grad_() for shape in [(7, 5), (5,), (3, 3)]]


def steps(found: list[Tensor], step: Callable[[int], None], first: int, last: int) -> None:
    """The third parameter has a gradient in every other step only."""
    for k in range(first, last):
        made = torch.Generator().manual_seed(k)
        for place, each in enumerate(found):
            skipped = place == 2 and k % 2
            each.grad = None if skipped else torch.randn(each.shape, generator=made) * 10.0 ** (k % 5 - 3)
        step(k)


@pytest.mark.parametrize("load", [False, True], ids=["from the start", "from a checkpoint of torch.optim.Adam"])
def test_steps_are_those_of_torch_optim_bit_for_bit(load: bool) -> None:
    wanted, found = parameters(), parameters()
    theirs, ours = torch.optim.Adam(wanted, lr=1e-2, fused=True), Adam(found, 1e-2)

    def their_step(k: int) -> None:
        theirs.param_groups[0]["lr"] = 1e-2 / (k + 1)
        theirs.step()

    def our_step(k: int) -> None:
        ours.lr = 1e-2 / (k + 1)
        ours.step()

    steps(wanted, their_step, 0, 20)
    if load:
        for each, other in zip(found, wanted, strict=True):
            each.data.copy_(other)
        ours.load_state_dict(copy.deepcopy(theirs.state_dict()))
    else:
        steps(found, our_step, 0, 20)
    steps(wanted, their_step, 20, 40)
    steps(found, our_step, 20, 40)
    assert all(torch.equal(a, b) for a, b in zip(found, wanted, strict=True))
    ours.zero_grad()
    assert all(each.grad is None for each in found)
