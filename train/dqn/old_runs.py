"""The reader of runs that version 0.3.0 trained with several learners (its setting `learner.replicas`)."""

from __future__ import annotations

import logging
import shutil
from pathlib import Path
from typing import Any

log = logging.getLogger("train")


def with_one_learner(state: dict[str, Any]) -> dict[str, Any]:
    """The state from which one learner resumes a run of several; any other state has only its counters mapped.

    The replay buffer starts empty (None), because each learner had a share of it. Requests of the other learners count
    as lost: other episodes are played in their place. As many updates are due as before.
    """
    learners, counters = state.get("replicas", 1), dict(state["counters"])
    counters["forgiven"] = counters.get("forgiven", 0.0) + counters.get("updates_offset", 0)
    counters.setdefault("inserted", counters["env_steps"])  # in 0.3.0 every decision was a transition
    if learners > 1:
        learner, out = state["settings"]["learner"], sum(count for _, count, _ in state["open_requests"])
        credit = counters["env_steps"] * learner["samples_per_insert"] / learner["batch_size"]
        counters["forgiven"] += credit - credit / learners
        counters["lost"] = counters["next_episode"] - counters["episodes"] - out
        log.warning(
            "%d learners trained this run, and one resumes it: the replay buffer starts empty, and updates wait for "
            "learner.learning_starts transitions in it",
            learners,
        )
        state = state | {"replay": None}
    return state | {"counters": counters}


def delete_shares(checkpoints: Path) -> None:
    """Delete the other learners' shares of the replay buffer: not before 0.3.0 can no longer want them."""
    for folder in checkpoints.glob("replica_*"):
        shutil.rmtree(folder, ignore_errors=True)
