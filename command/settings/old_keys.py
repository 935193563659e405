"""Settings of earlier versions: refused with what to write instead, and mapped in what was saved with them."""

from __future__ import annotations

from typing import Any

from busso.command.settings.checks import SettingsError
from busso.command.settings.overrides import parsed

KEYS = {
    "behaviour": "opponents.phases",
    "evaluation.best_by": "evaluation.best_metric",
    "exploration.share": "exploration.fraction",
    "learner.n_step_cut": "learner.watkins_cut",
    "network.start": "network.init_from",
    "opponent": "opponents.only",
    "rollout.threads": "rollout.torch_threads",
}
CHOICES = {"experiment=finish": "experiment=fine_tune"}
_ALIKE = "leave it out: all transitions are drawn alike"
# What 0.4.0 no longer has, keys and choices, and what to do instead.
GONE = {
    "jobs": "say hydra/launcher=joblib, and hydra.launcher.n_jobs=N",
    **dict.fromkeys(
        ("league.every_episodes", "league.size", "league.recent", "row=league"),
        "leave it out: opponents.phases names the network itself and players",
    ),
    "learner.cuda_graphs": "leave it out, or say learner.compile=true on a GPU",
    "learner.precision=float16": "say learner.precision=auto",
    "learner.replicas": "leave it out: a run has one learner",
    "learner.samples_per_insert=auto": "say learner.samples_floor=0.25",
    "longer": "say experiment=hour, or network.hidden and learner.muon",
    "processes=ray": "leave it out: a tournament plays on all CPUs of one machine",
    "replay.alpha": _ALIKE,
    "replay.beta": _ALIKE,
    "replay.beta_end": _ALIKE,
    "replay.prioritised": _ALIKE,
    "rollout.actor_threads": "say rollout=ray, and rollout.workers=N",
    "rollout.blocks": "say rollout=ray, and rollout.workers=N",
    "rollout.games=null": "say rollout.games=512",
    "rollout.kind=device": "say rollout=ray, the default",
    "rollout.kind=threads": "say rollout=ray, the default, or rollout=local on one CPU",
    "row=prioritised": _ALIKE,
    "row=all": "say 'row=glob(*,exclude=_*)'",
    "rollout=auto": "say rollout=ray, the default",
    "rollout=device": "say rollout=ray, the default, with rollout.gpus_per_worker=0.1 to use the GPU",
    "rollout=threads": "say rollout=ray, the default, or rollout=local on one CPU",
    "task": "say hydra/launcher=array",
}
# Saved values that no setting has today, and which one stands for them: by group, name and value.
_SAVED = {
    ("rollout", "kind", "threads"): "ray",
    ("rollout", "kind", "device"): "ray",
    ("rollout", "games", None): 512,
    ("learner", "precision", "float16"): "auto",
}


def refusal(*overrides: str) -> SettingsError | None:
    """The error that says what to write in place of the first old one of these overrides; None if none is old."""
    for key, value in ((each.key, (each.value or "").strip("'\"")) for each in map(parsed, overrides)):
        choice = f"{key}={value}"
        if key in KEYS:
            return SettingsError(key, f"it is {KEYS[key]} now")
        if choice in CHOICES:
            return SettingsError(key, f"{value} is {CHOICES[choice].partition('=')[2]} now")
        for gone, said in ((key, "it"), (choice, value)):
            if gone in GONE:
                return SettingsError(key, f"{said} no longer exists", GONE[gone])
    return None


def upgraded(settings: Any) -> Any:
    """A copy of saved settings of earlier versions as today's; anything but a dictionary as it is."""
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
    for (group, name, value), today in _SAVED.items():
        there = found.get(group)
        if isinstance(there, dict) and name in there and there[name] == value:
            there[name] = today
    opponents = found.get("opponents")
    if isinstance(opponents, dict) and isinstance(phases := opponents.get("phases"), list):
        opponents["phases"] = [_phase(phase) for phase in phases]
    return found


def _phase(saved: Any) -> Any:
    """A saved phase of opponents as today's. In the seats of past selves, which there were, sits the network itself."""
    if not isinstance(saved, dict):
        return saved
    mix = saved.get("mix")
    if isinstance(mix, dict) and "league" in mix:
        mix = {"network": 0.0} | mix
        mix["network"] += mix.pop("league")
        saved = saved | {"mix": mix}
    return {"each": "seat", **saved}
