"""A learner that follows the first of a run: the same updates, on its own share of the buffer and of the games."""

from __future__ import annotations

import signal
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from functools import partial

import torch

from command.child import end_with_parent
from command.errors import UserError
from command.settings.checks import SettingsError
from train.dqn.replicas.group import EndedError, Group, Words
from train.dqn.replicas.launch import KEY, ReplicaPlace, connect, listen, share_of, start_beside
from train.dqn.replicas.shares import folder_of_share
from train.dqn.rollout.backend import BackendLostError, RolloutBackend
from train.dqn.trainer import DqnTrainer
from train.run.checkpoint import checkpoint, ids
from train.run.checkpoint.background_writer import BackgroundWriter
from train.run.device import choose_device
from train.run.folder import RunFolder
from train.run.signals import EXIT_REQUEUE, StopRequest, ignore_signals
from train.settings.dqn import TrainSettings


@dataclass(frozen=True)
class Means:
    """How a replica checks its device, which may change its settings, and what plays for it."""

    checked: Callable[[TrainSettings, torch.device, RunFolder], TrainSettings]
    make_backend: Callable[[TrainSettings, torch.device], RolloutBackend]


@contextmanager
def led(settings: TrainSettings, place: ReplicaPlace, means: Means) -> Iterator[Group]:
    """The group of the first replica, which ends with the context; other replicas of the node start at once."""
    store, place = listen(place)
    group = Group(store, place, start_beside(follow_beside, settings, place, means))
    try:
        yield group
    finally:
        group.end()


def follow_beside(number: int, settings: TrainSettings, first: ReplicaPlace, parent: int, means: Means) -> None:
    """A replica below the first of its node, as `start_beside` starts it; ends the process."""
    if end_with_parent(parent, signal.SIGKILL):
        ignore_signals()
        signal.pthread_sigmask(signal.SIG_UNBLOCK, StopRequest.SIGNALS)
        sys.exit(_follow(settings, first.beside(number + 1), means))


def follow_on_node(settings: TrainSettings, place: ReplicaPlace, means: Means) -> int:
    """All replicas of a node that is not the first; returns the exit code."""
    ignore_signals()
    signal.pthread_sigmask(signal.SIG_UNBLOCK, StopRequest.SIGNALS)
    start_beside(follow_beside, settings, place, means)  # each ends with this process, or before
    return _follow(settings, place, means)


def device_of_replica(kind: str, place: ReplicaPlace) -> torch.device:
    """The first's kind of device for all; the GPU of a replica is that of its number on the node, and it uses no other.

    Raises SettingsError where the node has fewer.
    """
    if kind != "cuda":
        return torch.device(kind)
    if place.here > (count := torch.cuda.device_count()):
        raise SettingsError(KEY, f"{place.here} learners on a node with {count} GPUs", "say fewer, or device=cpu")
    return choose_device(f"cuda:{place.local}")


def _follow(settings: TrainSettings, place: ReplicaPlace, means: Means) -> int:
    """Until the first replica ends the run. Returns 0, or the exit code of what went wrong, which the first says."""
    torch.set_num_threads(settings.learner.cpu_threads)
    try:
        group = Group(connect(place), place)
    except RuntimeError as error:
        print(f"error: {KEY}: the first learner does not answer ({error})".partition("\n")[0], file=sys.stderr)
        return EXIT_REQUEUE
    try:
        _Follower(settings, group, means).run()
    except UserError as error:
        group.fail(str(error), error.exit_code)
        return error.exit_code
    except Exception as error:
        traceback.print_exc()
        group.fail(f"{type(error).__name__}: {error}".partition("\n")[0], EXIT_REQUEUE)
        return EXIT_REQUEUE
    finally:
        group.leave()
    return 0


class _Follower:
    def __init__(self, settings: TrainSettings, group: Group, means: Means) -> None:
        self._settings, self._group, self._means = settings, group, means
        self._writer = BackgroundWriter()

    def run(self) -> None:
        try:
            words = self._group.exchange({})[0]
        except EndedError:
            return
        settings, folder = self._settings, RunFolder(self._settings)
        settings = replace(settings, learner=replace(settings.learner, threads=words["threads"]))
        device = device_of_replica(words["device"], self._group.place)
        settings = self._means.checked(settings, device, folder)
        self._group.exchange({})  # a replica that failed until here has said so, or is seen to be gone
        self._group.connect(device)
        share = share_of(settings, self._group.place, device.type == "cuda")
        with closing(self._means.make_backend(share, device)) as rollouts:
            trainer = DqnTrainer(settings, folder, device, rollouts, self._group)
            if words["checkpoint"]:
                state = checkpoint.load(folder.checkpoints / words["checkpoint"], to_go_on=True)
                trainer.load_state_dict(state)
            self._save = partial(self._save_share, trainer, words["run"])
            assert trainer.shared is not None
            trainer.shared.save = self._save
            try:
                trainer.make_ready(fresh=not words["checkpoint"])
                while True:
                    self._step(trainer)
            except EndedError as ended:
                self._save(ended.args[0])
            except BackendLostError as error:
                if error.key != KEY or not (last := self._group.wait_for_end()):
                    raise
                self._save(last)
            finally:
                self._writer.wait()

    def _step(self, trainer: DqnTrainer) -> None:
        if trainer.finished():  # the first evaluates, and ends the run after that
            self._save(self._group.listen())
        else:
            trainer.play_and_update()

    def _save_share(self, trainer: DqnTrainer, run: str | None, words: Words) -> None:
        """The share of a checkpoint, if the words are of one. Raises SettingsError if the weights are others."""
        if "save" not in words:
            return
        weights = trainer.learner.fingerprint()
        if weights != words["weights"]:
            problem = "the weights of two learners are no longer equal, as if their CPUs or GPUs were of two kinds"
            raise SettingsError(KEY, problem, "give the job nodes of one kind, or resume with learner.replicas=1")
        folder = folder_of_share(self._settings.folder / "checkpoints", self._group.rank)
        folder.mkdir(parents=True, exist_ok=True)
        state = {"replay": trainer.replay.state_dict(), "open_requests": trainer.requests.state_dict()["open_requests"]}
        path = checkpoint.path_for(folder, words["save"])
        self._writer.save(path, ids.with_id(state, run), self._settings.checkpoint.keep)
