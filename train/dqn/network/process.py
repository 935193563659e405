"""Settings of every process that computes with a network: its threads after a fork, and its memory.

PyTorch's thread pool does not survive fork(); without this a child would hang at its first product.
"""

import os

import torch

from busso.command.system import keep_freed_memory

forked = [False]  # whether this process is a fork of one that had loaded a network's code


def _begin_fork() -> None:
    forked[0] = True
    torch.set_num_threads(1)


os.register_at_fork(after_in_child=_begin_fork)
keep_freed_memory()
