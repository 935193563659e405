"""PyTorch's threads of CPUs do not survive a fork, which would wait for them for ever: it has one of its own."""

import os

import torch

forked = [False]  # whether this process is a fork of one that had loaded a network's code


def _begin_fork() -> None:
    forked[0] = True
    torch.set_num_threads(1)


os.register_at_fork(after_in_child=_begin_fork)
