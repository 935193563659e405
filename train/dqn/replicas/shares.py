"""The shares of the replay buffer of several learners, in checkpoints beside that of the run.

Share k of a checkpoint, for k = 1, 2, ..., is a file of the same name in the folder `replica_k` beside it, with
segments of its own; share 0 is in the checkpoint itself. If a share is missing or damaged, the run resumes with
a warning and fewer transitions.
"""

from __future__ import annotations

import logging
import shutil
from collections.abc import Sequence
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from train.dqn.replay.buffer import ReplayBuffer, TransitionTensors
from train.run.checkpoint import checkpoint, ids
from train.run.checkpoint.columns import Columns
from train.run.checkpoint.files import NewerFormatError
from train.run.checkpoint.segments import StoredSegments

log = logging.getLogger("train")

State = dict[str, Any]
_SUCCESSOR = TransitionTensors._fields.index("successor")


def folder_of_share(checkpoints: Path, rank: int) -> Path:
    """Where the shares of a replica lie."""
    return checkpoints / f"replica_{rank}"


def replicas_of(state: State) -> int:
    """How many learners made a checkpoint."""
    return int(state.get("replicas", 1))


def shares_of(checkpoints: Path, state: State) -> list[State | None]:
    """The shares of a checkpoint, by replica; None for one that is lost. Raises OSError and NewerFormatError."""
    return [state, *(_share(checkpoints, rank, state) for rank in range(1, replicas_of(state)))]


def _share(checkpoints: Path, rank: int, state: State) -> State | None:
    """The newest that is whole, of the same run, and no newer than the checkpoint."""
    folder, episodes = folder_of_share(checkpoints, rank), state["counters"]["episodes"]
    wanted = checkpoint.path_for(folder, episodes)
    for path in checkpoint.listed(folder) if folder.is_dir() else []:
        if path.name > wanted.name:
            continue
        try:
            found = checkpoint.load(path, to_go_on=True)
        except (NewerFormatError, checkpoint.UnreadableError):
            raise
        except checkpoint.CheckpointError as error:
            log.warning("%s; an older share of the replay buffer is used", error)
            continue
        if ids.id_of(found) == ids.id_of(state):
            if path != wanted:
                log.warning("%s is missing; %s is used", wanted, path.name)
                found["open_requests"] = []  # some may have been played since
            return found
    log.warning("%s is missing; its share of the replay buffer is lost", wanted)
    return None


def open_requests_of(shares: Sequence[State | None], rank: int, size: int, counters: dict[str, Any]) -> list[list[int]]:
    """The requests that a replica of `size` plays first: its own, or of another number of learners its part of all.

    What a lost share had counts as lost, so that other episodes are played in its place.
    """
    each = [[] if share is None else list(share["open_requests"]) for share in shares]
    if len(shares) > 1:
        there = counters["episodes"] + sum(n for some in each for _, n, _ in some)
        counters["lost"] = counters["next_episode"] - there
    if len(shares) == size:
        return each[rank]
    return [request for some in each for request in some][rank::size]


def load_replay(replay: ReplayBuffer, shares: Sequence[State | None], rank: int, size: int) -> None:
    """Fill the buffer of a replica of `size`: its own share, or of another number of learners its part of all.

    Then rollouts are dealt in turn, so that successors stay beside their rows; priorities begin anew. Raises OSError,
    and ValueError where the own share does not fit.
    """
    if len(shares) == size:
        own = shares[rank]
        if own is not None:
            replay.load_state_dict(own["replay"])
        return
    dealt = 0
    for state in (share["replay"] for share in shares if share is not None):
        try:
            numbers = _rollouts(state)
        except NewerFormatError:
            raise
        except ValueError as error:
            log.warning("replay: %s; this share of the replay buffer is lost", error)
            continue
        at = 0
        for _, piece in state["rows"].pieces():
            there = numbers[at : at + len(piece[0])]
            at += len(there)
            mine = torch.from_numpy((dealt + there) % size == rank)
            replay.add(TransitionTensors(*(column[mine] for column in piece)))
        dealt += int(numbers[-1]) + 1 if len(numbers) else 0
    inserted = sum(share["replay"]["inserted"] for share in shares if share is not None)
    replay.generator.manual_seed((replay.generator.initial_seed() + inserted) % 2**63)


def delete_shares_from(checkpoints: Path, first: int) -> None:
    """Delete the shares of replicas that neither the checkpoint nor the run has."""
    for rank in count(first):
        folder = folder_of_share(checkpoints, rank)
        if not folder.is_dir():
            return
        shutil.rmtree(folder, ignore_errors=True)


def _rollouts(state: State) -> NDArray[np.int64]:
    """The number of the rollout of each row of a share, from the oldest on.

    One begins where no row before has its successor. Raises ValueError where the rows cannot be dealt.
    """
    rows: Columns = state["rows"]
    if state.get("columns") != list(TransitionTensors._fields):
        raise ValueError("of an older version, which stored transitions in another way")
    if isinstance(rows, StoredSegments):
        rows.check()
    distance = np.empty(rows.rows, np.int64)
    at = 0
    for _, piece in rows.pieces():
        distance[at : at + len(piece[0])] = piece[_SUCCESSOR].numpy()
        at += len(piece[0])
    reached = np.maximum.accumulate(np.arange(len(distance)) + distance)
    begins = np.ones(len(distance), np.int64)
    begins[1:] = reached[:-1] < np.arange(1, len(distance))
    return np.cumsum(begins) - 1
