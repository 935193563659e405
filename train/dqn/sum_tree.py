"""A sum tree of priorities in tensors: drawing and changing many leaves at once, on any device."""

import torch
from torch import Tensor


class SumTree:
    """Non-negative weights of `capacity` leaves; a draw picks a leaf in proportion to its weight.

    Nodes are float64 in one array, node 1 the root, children of k at 2k and 2k + 1.
    """

    def __init__(self, capacity: int, device: torch.device) -> None:
        self._depth = max(1, (capacity - 1).bit_length())
        self._first_leaf = 1 << self._depth
        self._capacity = capacity
        self._nodes = torch.zeros(2 * self._first_leaf, dtype=torch.float64, device=device)

    @staticmethod
    def bytes_for(capacity: int) -> int:
        """Bytes of a tree of so many leaves."""
        return 16 << max(1, (capacity - 1).bit_length())

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return self._nodes.nbytes

    @property
    def leaves(self) -> Tensor:
        """The weights `[capacity]`."""
        return self._nodes[self._first_leaf : self._first_leaf + self._capacity]

    @property
    def total(self) -> Tensor:
        """Sum of all weights."""
        return self._nodes[1]

    def set(self, index: Tensor, weight: Tensor) -> None:
        """Set the weights of leaves; of an index given twice, one of its weights holds."""
        nodes = index + self._first_leaf
        self._nodes[nodes] = weight.to(torch.float64)
        for _ in range(self._depth):
            nodes = nodes >> 1
            # Sums are taken anew from both children, so that rounding never accumulates.
            self._nodes[nodes] = self._nodes[2 * nodes] + self._nodes[2 * nodes + 1]

    def fill(self, weights: Tensor) -> None:
        """Set the weights of the first leaves and 0 for the others, to the same bits as `set`, with no copy of them."""
        self.leaves[: len(weights)] = weights
        self.leaves[len(weights) :] = 0
        level = self._first_leaf
        while level > 1:
            children = self._nodes[level : 2 * level]
            level //= 2
            torch.add(children[::2], children[1::2], out=self._nodes[level : 2 * level])

    def sample(self, uniform: Tensor) -> tuple[Tensor, Tensor]:
        """Draws in [0, 1) -> leaf indices and their probabilities. Stratify the draws as you like."""
        target = uniform.to(torch.float64) * self.total
        nodes = torch.ones_like(target, dtype=torch.int64)
        for _ in range(self._depth):
            left = 2 * nodes
            left_sum = self._nodes[left]
            # An empty right side is never entered, even when rounding puts the target past the left sum.
            right = (target >= left_sum) & (self._nodes[left + 1] > 0)
            target = torch.where(right, target - left_sum, target)
            nodes = left + right
        return nodes - self._first_leaf, self._nodes[nodes] / self.total
