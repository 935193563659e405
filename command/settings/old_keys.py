"""Keys of version 0.2.0 that have another name: refused with the new one, and renamed in what was saved with them."""

from __future__ import annotations

from typing import Any

KEYS = {
    "behaviour": "opponents.phases",
    "evaluation.best_by": "evaluation.best_metric",
    "exploration.share": "exploration.fraction",
    "learner.n_step_cut": "learner.watkins_cut",
    "network.start": "network.init_from",
    "opponent": "opponents.only",
    "rollout.blocks": "rollout.actor_threads",
    "rollout.threads": "rollout.torch_threads",
}
CHOICES = {"experiment=finish": "experiment=fine_tune"}


def upgraded(settings: Any) -> Any:
    """A copy of saved settings of version 0.2.0 under the names of today; anything but a dictionary as it is."""
    if not isinstance(settings, dict):
        return settings
    found = {key: dict(value) if isinstance(value, dict) else value for key, value in settings.items()}
    for old, new in KEYS.items():
        group, _, name = old.rpartition(".")
        there = found.get(group) if group else found
        if isinstance(there, dict) and name in there:
            value = there.pop(name)
            group, _, name = new.rpartition(".")
            there = found.setdefault(group, {})
            if isinstance(there, dict):
                there.setdefault(name, value)
    opponents = found.get("opponents")
    if isinstance(opponents, dict) and isinstance(phases := opponents.get("phases"), list):
        opponents["phases"] = [{"each": "seat", **phase} if isinstance(phase, dict) else phase for phase in phases]
    return found
