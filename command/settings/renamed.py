"""Old spellings of settings: refused in one line that names the new one, and read in what was saved with them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from command.settings.checks import SettingsError

KEYS = {
    "learner.min_replay": "learner.learning_starts",
    "learner.target_sync": "learner.target_update_interval",
    "learner.average": "learner.ema_decay",
    "rollout.batch": "rollout.games",
    "least_visits": "min_visits",
}
VALUES = {
    "seed": "study",  # of game.reward
    "seed_heuristic": "study_heuristic",
}
EXPERIMENTS = {"quick": "no experiment: it is the default", "spike": "game=spike", "seed_tressette": "study_tressette"}
_GONE = {"exploration.updates": "exploration.share, of the budget of the run"}


def refuse_old_spellings(overrides: Sequence[str]) -> None:
    """Raise SettingsError for an override with a key or a value that has another name now."""
    for override in overrides:
        key, _, value = override.lstrip("+~").partition("=")
        if key in KEYS or key in _GONE:
            raise SettingsError(key, f"it is {(KEYS | _GONE)[key]} now")
        if key in ("game.reward", "reward") and value in VALUES:
            raise SettingsError(key, f"{value} is {VALUES[value]} now")
        if key == "experiment":
            _refuse_experiment(value)
        if re.search(r"\bseed_heuristic\b", value):
            raise SettingsError(key, "seed_heuristic is study_heuristic now")


def _refuse_experiment(name: str) -> None:
    new = EXPERIMENTS.get(name) or (name.replace("report_", "study_") if name.startswith("report_") else None)
    if new is not None:
        raise SettingsError("experiment", f"{name} is {new} now")


def renewed(settings: Any) -> Any:
    """Settings of an old checkpoint under the names of today; anything but a dictionary as it is."""
    if not isinstance(settings, dict):
        return settings
    found = _with_values(settings)
    for old, new in KEYS.items():
        _move(found, old.split("."), new.split("."))
    if "iterations" in found and found.get("algo") == "q_learning":
        found["algo"] = "batch_q_learning"
    return found


def _with_values(value: Any, key: str = "") -> Any:
    if isinstance(value, dict):
        return {VALUES.get(k, k) if key == "mix" else k: _with_values(item, k) for k, item in value.items()}
    if isinstance(value, list):
        return [_with_values(item, key) for item in value]
    return VALUES.get(value, value) if key in ("reward", "opponents") and isinstance(value, str) else value


def _move(settings: dict[str, Any], old: list[str], new: list[str]) -> None:
    """Move a value from its old name to the new one, in the same group."""
    group = settings
    for name in old[:-1]:
        group = group.get(name, {})
    if isinstance(group, dict) and old[-1] in group:
        group.setdefault(new[-1], group.pop(old[-1]))
