"""Priorities in a flat tensor: draws and changes many at once, on any device, in a few operations."""

from typing import Any

import torch
from torch import Tensor

BLOCK = 128  # priorities whose sum is kept; a draw looks at one such block


class Priorities:
    """Non-negative float32 weights of `capacity` places; a draw picks a place in proportion to its weight.

    The sums of blocks are kept beside them, in float64. A draw looks for its block in the running sum over these, and
    for its place in the running sum over the block. Whatever changes, the sums of its blocks are taken anew, so that
    rounding never accumulates. No operation waits for the device. A GPU adds up in any order, and so it writes a place
    that is named twice: there two runs may differ.
    """

    def __init__(self, capacity: int, device: torch.device) -> None:
        self._capacity = capacity
        blocks = -(-capacity // BLOCK)
        self._blocks = torch.zeros(blocks, BLOCK, dtype=torch.float32, device=device)
        self._weights = self._blocks.view(-1)
        self._sums = torch.zeros(blocks, dtype=torch.float64, device=device)
        self._edges = torch.zeros(blocks + 1, dtype=torch.float64, device=device)  # of the blocks, in the running sum

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return self._blocks.nbytes + self._sums.nbytes + self._edges.nbytes

    @property
    def weights(self) -> Tensor:
        """The priority of every place, `[capacity]`."""
        return self._weights[: self._capacity]

    def set(self, index: Tensor, weight: Tensor) -> None:
        """Set the weights of places; of an index given twice, one of its weights holds."""
        self._weights[index] = weight
        blocks = index // BLOCK
        self._sums[blocks] = self._blocks[blocks].sum(1, dtype=torch.float64)

    def fill(self, first: int, end: int, weight: Tensor) -> None:
        """Give the places `first .. end - 1` the same weight, a tensor of one number."""
        self._weights[first:end] = weight
        blocks = slice(first // BLOCK, -(-end // BLOCK))
        self._sums[blocks] = self._blocks[blocks].sum(1, dtype=torch.float64)

    def sample(self, uniform: Tensor, size: int) -> tuple[Tensor, Tensor]:
        """Float64 draws in [0, 1) -> places and their probabilities. Stratify the draws as you like.

        No place from `size` on has a weight. On a GPU, where running sums are added up in another order, rounding might
        lead there all the same: then it is the last place before.
        """
        torch.cumsum(self._sums, 0, out=self._edges[1:])
        total = self._edges[-1]
        target = uniform * total
        block = torch.searchsorted(self._edges[1:], target, right=True).clamp_(max=len(self._sums) - 1)
        within = self._blocks[block].cumsum(1, dtype=torch.float64)
        # The block's two sums may differ in their last bit: never beyond the last place that has a weight.
        rest = torch.minimum(target - self._edges[block], torch.nextafter(within[:, -1], -within[:, -1]))
        index = block * BLOCK + torch.searchsorted(within, rest.unsqueeze(1), right=True).squeeze(1)
        index.clamp_(max=size - 1)
        return index, self._weights[index].double() / total

    def state_dict(self, size: int) -> dict[str, Any]:
        """The weights of the first `size` places, and all sums; views, not copies."""
        return {"weights": self._weights[:size], "sums": self._sums}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore `state_dict`; places that it does not have weigh nothing."""
        size = len(state["weights"])
        self._weights[:size] = state["weights"]
        self._weights[size:] = 0
        self._sums.copy_(state["sums"])
