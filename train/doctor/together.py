"""How many decisions a second a whole run plays and learns from, by kind of rollout, on a machine with a GPU."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import replace
from tempfile import TemporaryDirectory

import torch

from cards.stopping import never
from command.errors import UserError
from train.doctor.measure import Make, in_words, now
from train.dqn.learner.learner import Learner
from train.dqn.network.build import build_network
from train.dqn.requests import UPDATES_AT_ONCE, Requests
from train.dqn.rollout.worker import build_replay
from train.dqn.self_check import self_check
from train.run.budget import Budget
from train.run.device import choose_device
from train.run.metrics import resources
from train.settings.dqn import RolloutSettings, TrainSettings
from train.settings.resolve import Machine, with_rollout

_SECONDS = 4.0  # of measuring, for each kind: a GPU takes several rollouts at a time
_LEAST_GAIN = 1.1  # of another kind of rollout, to be worth a line


def compare_kinds(settings: TrainSettings, make: Make, seconds: float = _SECONDS) -> Iterator[str]:
    """Where the learner is on a GPU: a line on the run as it is, and on each other kind of rollout that brings more.

    Each is measured as a whole, with Ray where it uses it.
    """
    device = choose_device(settings.device)
    if device.type != "cuda":
        return
    used = settings.rollout.kind
    with TemporaryDirectory() as folder:  # for what Ray writes
        settings = replace(settings, runs=folder)
        own = together(settings, device, make, seconds)
        yield f"rollout={used}: {in_words(own)} decisions/s, played and learned from"
        for kind in sorted({"ray", "threads", "device"} - {used}):
            with suppress(UserError):  # it cannot play this game, or not on this machine
                other = _with_kind(settings, kind)
                faulty = self_check(other, device)[0] != other
                gain = 0.0 if faulty else together(other, device, make, seconds) / own
                if gain >= _LEAST_GAIN:
                    yield f"rollout={kind}: {gain:.1f} times as fast here"


def _with_kind(settings: TrainSettings, kind: str) -> TrainSettings:
    """The same run with another kind of rollout, as its name alone would choose it. Raises SettingsError."""
    own = settings.rollout
    other = RolloutSettings(kind, games=None, nodes=own.nodes, join_seconds=own.join_seconds)
    return with_rollout(settings, other, Machine(True, resources.cpus()))


def together(settings: TrainSettings, device: torch.device, make: Make, seconds: float) -> float:
    """Decisions a second that a run plays, inserts, and pays for with updates. Raises UserError."""
    game = settings.load_game()
    with closing(make(settings, device)) as rollouts:
        learner = Learner(
            build_network(game, settings), build_replay(game, settings, device), settings.learner, device, game.actions
        )
        requests = Requests(settings, rollouts, learner, Budget(None, settings.training_minutes))
        rollouts.describe(never)

        def step() -> None:
            requests.give_out()
            requests.take(wait=requests.updates_due() == 0)
            learner.update_many(min(requests.updates_due(), requests.updates_at_once))

        while learner.updates < 2 * UPDATES_AT_ONCE:  # until all is compiled and captured
            step()
        started, before = now(device), requests.counters.env_steps
        while requests.counters.env_steps == before or time.perf_counter() < started + seconds:
            step()
        return (requests.counters.env_steps - before) / (now(device) - started)
