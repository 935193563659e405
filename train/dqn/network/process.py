"""Process-wide settings for computing with networks: threads after a fork, and memory.

PyTorch's thread pool does not survive fork(); without this a child would hang at its first product.
"""

import os

import torch

from busso.command.system import keep_freed_memory

forked = [False]  # True if this process was forked after this module was imported


def _begin_fork() -> None:
    forked[0] = True
    torch.set_num_threads(1)


os.register_at_fork(after_in_child=_begin_fork)
keep_freed_memory()
