"""Driver process: uses Ray on behalf of the learner; pool of rollout workers as Ray actors."""

import os
import queue
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from multiprocessing.connection import Connection
from typing import Any, NoReturn, assert_never

import ray
from ray.exceptions import RayError, RayTaskError

from busso.base.errors import EXIT_REQUEUE, UserError
from busso.base.files import code_digest
from busso.command.settings.checks import SettingsError
from busso.train.rollout.ray import actors, messages, private
from busso.train.rollout.ray.connect import NotStartedError, alive_nodes, amounts, connect, describe_nodes, reserve
from busso.train.rollout.ray.messages import ASKED, HEALTH, Arrays, Order, Slot, WeightArrays
from busso.train.rollout.request import Rollout, RolloutRequest
from busso.train.run.signals import ignore_signals

START_SECONDS = 300.0  # allowed for a start: many workers may read PyTorch from one slow disk
DEATHS_IN_A_ROW = 5  # deaths without a result, beyond the number of workers, that end the run
ALIVE_SECONDS = 1.0  # between two "alive" messages
_AGAIN = "the same command resumes from the checkpoint"


class WorkersLostError(SettingsError):
    """Actors that cannot be replaced in this start of the run."""

    exit_code = EXIT_REQUEUE


@dataclass(eq=False)
class _Actor:
    """State of an actor in this process."""

    handle: Any
    requests: dict[int, RolloutRequest] = field(default_factory=dict)  # requests in flight, by first episode
    heard: float = field(default_factory=time.monotonic)  # time of its last progress or idle answer
    asked: bool = False  # heartbeat sent but not answered
    rounds: int = -1
    ready: bool = False  # has answered a heartbeat
    useful: bool = False  # has returned a result


@dataclass(eq=False)
class _Duel:
    """Part of an evaluation: the tag, one opponent, and a reference to the weights, which Ray resolves in a call."""

    tag: int
    opponent: str
    weights: Any


class WorkerPool:
    """Workers on the cluster that `connect` joined.

    A worker that dies, or makes no progress for `rollout.heartbeat_seconds`, is replaced, and its requests are played
    again with other games. With `rollout.workers=null` the number of workers follows the CPUs of the cluster. All
    methods must be called from one thread, which also runs the events that Ray's threads pass to `put`. A heartbeat
    carries a reference to the newest weights; a worker fetches them at its next batch, and each node stores them once.
    """

    def __init__(
        self, order: Order, tell: Callable[..., None], put: Callable[[Callable[[], None]], None], reserved: int
    ) -> None:
        self._rollout, self._settings = order.rollout, order.settings
        self._tell, self._put = tell, put
        self._reserved = reserved  # CPUs of this node for the learner
        if reserved:
            reserve(reserved, self._wanted())
        remote = ray.remote(concurrency_groups={HEALTH: 1})
        gpus = self._rollout.gpus_per_worker
        self._worker_class = remote(actors.WorkerActor).options(num_cpus=1, num_gpus=gpus, scheduling_strategy="SPREAD")
        self._newest: tuple[int, list[Any]] = (-1, [])  # version and reference, in a list so that Ray does not fetch it
        self._lost: list[RolloutRequest] = []  # to play again
        self._duels: deque[_Duel] = deque()  # to play, the first one now if there is an evaluator
        self._fruitless = 0  # deaths of actors without results since the last result
        self._failed_starts = 0  # since the last actor that started
        self._code, self._code_seen = order.code, 0.0  # the learner's, and when it was last found on disk
        self._looked = time.monotonic()
        self._workers = {self._start(): None for _ in range(self._wanted())}
        self._evaluator: _Actor | None = None  # the worker that evaluates, which has loaded the opponents

    def _start(self) -> _Actor:
        if time.monotonic() - self._code_seen > ALIVE_SECONDS:  # once for many actors
            if code_digest() != self._code:
                raise WorkersLostError(ASKED, "busso's code has changed since this start: no actor can join it", _AGAIN)
            self._code_seen = time.monotonic()
        actor = _Actor(self._worker_class.remote(self._settings))
        self._ask(actor)
        return actor

    def _then(self, reference: Any, event: Callable[[Future[Any]], None]) -> None:
        """Call `event` with the answer, in the event thread."""
        reference.future().add_done_callback(lambda future: self._put(partial(event, future)))

    def _wanted(self) -> int:
        """Return the target number of workers: `rollout.workers`, or the CPUs not reserved for the learner."""
        rollout = self._rollout
        if rollout.workers is not None:
            return rollout.workers
        has = amounts()
        wanted = int(has["CPU"]) - self._reserved
        if rollout.gpus_per_worker:
            wanted = min(wanted, int(has["GPU"] / rollout.gpus_per_worker))
        return max(1, wanted)

    @property
    def look_seconds(self) -> float:
        """Seconds between two checks of the workers."""
        return self._rollout.look_seconds(len(self._workers))

    def describe(self) -> str:
        """Describe the workers in one line."""
        rollout, nodes = self._rollout, len(alive_nodes())
        return (
            f"ray: {len(self._workers)} workers on {nodes} node(s), {rollout.in_flight} batches of {rollout.games} each"
        )

    # ------------------------------------------------------------------ requests

    def publish(self, version: int, weights: WeightArrays) -> None:
        """Put the weights into the object store once for all workers. Old ones are freed when no worker uses them."""
        self._newest = (version, [ray.put(weights)])

    def submit(self, request: RolloutRequest) -> None:
        """Submit a request to the least busy worker, or queue it if no worker is ready."""
        worker = self._least_busy()
        if worker is None:
            self._lost.append(request)
            return
        worker.requests[request.first] = request
        reference = worker.handle.play.remote(request, *self._newest)
        self._then(reference, partial(self._played, worker, request))

    def _least_busy(self) -> _Actor | None:
        """Return the ready worker with the fewest requests, the one that evaluates last; None if none is ready."""
        ready = [worker for worker in self._workers if worker.ready]
        busy = self._evaluator if self._duels else None
        return min(ready, key=lambda worker: (worker is busy, len(worker.requests)), default=None)

    def _played(self, worker: _Actor, request: RolloutRequest, answer: Future[Any]) -> None:
        if worker.requests.get(request.first) is not request:
            return  # the actor was replaced, and another plays the request
        played = self._result(worker, answer)
        if played is None:
            return
        rollout, arrays = played
        del worker.requests[request.first]
        self._fruitless, worker.useful = 0, True
        self._tell("rollout", rollout, arrays)

    # ------------------------------------------------------------------ health

    def look_after_workers(self) -> None:
        """Request heartbeats periodically, adapt to the cluster's size, and resubmit lost requests."""
        now = time.monotonic()
        if now - self._looked >= self.look_seconds:
            if now - self._looked > self._rollout.heartbeat_seconds / 2:
                for actor in self._workers:  # this process was stalled and sent no heartbeats
                    actor.heard = now
            self._looked = now
            for actor in list(self._workers):
                self._check(actor, now)
            self._fit_to_cluster()
        while self._lost and any(worker.ready for worker in self._workers):
            self.submit(self._lost.pop(0).again())
        if self._duels and self._evaluator is None:
            self._play_next_duel()

    def _result(self, actor: _Actor, answer: Future[Any]) -> Any:
        """Return an actor's answer; replace a lost actor and return None."""
        try:
            return answer.result()
        except RayTaskError:
            raise  # our own error, which would recur
        except RayError as error:  # the actor, its node or its result is gone
            reason = reason_of(error)
            self._failed_starts += getattr(error, "actor_init_failed", False)
            if self._failed_starts >= DEATHS_IN_A_ROW and any(worker.ready for worker in self._workers):
                raise WorkersLostError(ASKED, f"actors do not start any more ({reason})", _AGAIN) from None
            self._replace(actor, reason)
            return None

    def _ask(self, actor: _Actor) -> None:
        actor.asked = True
        self._then(actor.handle.beat.remote(*self._newest), partial(self._answered, actor))

    def _answered(self, actor: _Actor, answer: Future[Any]) -> None:
        if actor not in self._workers:
            return
        rounds = self._result(actor, answer)
        if rounds is None:
            return
        if rounds != actor.rounds or not actor.requests:
            actor.heard, actor.rounds = time.monotonic(), rounds
        actor.asked = False
        if not actor.ready:
            actor.ready, self._failed_starts = True, 0
            self._tell_workers()

    def _tell_workers(self) -> None:
        self._tell("workers", sum(worker.ready for worker in self._workers))

    def _check(self, actor: _Actor, now: float) -> None:
        """Replace the actor if it is unresponsive, else send the next heartbeat."""
        silent, limit = now - actor.heard, self._rollout.heartbeat_seconds
        if actor.ready and silent > limit:
            self._replace(actor, f"no progress for {limit:g} s (rollout.heartbeat_seconds)")
        elif not actor.ready and silent > START_SECONDS:
            self._give_up_starting(actor, silent)
        elif not actor.asked:
            self._ask(actor)

    def _give_up_starting(self, actor: _Actor, seconds: float) -> None:
        """Replace an actor that does not start, or raise SettingsError if no worker has started."""
        if not any(worker.ready for worker in self._workers):
            has = ", ".join(f"{amount:g} {name}s" for name, amount in amounts().items())
            raise SettingsError("rollout=ray", f"no worker has started in {seconds:.0f} s; the cluster has {has}")
        self._replace(actor, f"not started in {seconds:.0f} s")

    def _fit_to_cluster(self) -> None:
        """Start or drop workers to match the target number; only workers that have not started are dropped."""
        excess = len(self._workers) - self._wanted()
        for worker in [worker for worker in self._workers if not worker.ready][: max(0, excess)]:
            del self._workers[worker]
            ray.kill(worker.handle)
        self._workers |= {self._start(): None for _ in range(-excess)}

    def _replace(self, actor: _Actor, reason: str) -> None:
        """Kill an actor, start a replacement and requeue its requests."""
        ray.kill(actor.handle)
        self._count_death(actor, reason)
        if actor is self._evaluator:
            self._evaluator = None  # the next one plays the first of the duels again
        if actor in self._workers:
            del self._workers[actor]
            self._lost += actor.requests.values()
            actor.requests.clear()
            self._tell_workers()
            self._fit_to_cluster()

    def _count_death(self, actor: _Actor, reason: str) -> None:
        self._fruitless += not actor.useful
        if self._fruitless >= DEATHS_IN_A_ROW + len(self._workers):
            raise SettingsError("rollout=ray", f"too many actors died in a row ({reason})", "try rollout=local")
        self._tell("warning", f"replacing a Ray worker: {reason}")

    # ------------------------------------------------------------------ evaluation

    def evaluate(self, tag: int, weights: WeightArrays, opponents: Sequence[str]) -> None:
        """Start an evaluation by one worker, which plays requests between the opponents.

        A process for it alone would load PyTorch and the game again. If the worker dies, another goes on.
        """
        reference = ray.put(weights)
        idle = not self._duels
        self._duels += [_Duel(tag, opponent, reference) for opponent in opponents]
        if idle:
            self._play_next_duel()

    def _play_next_duel(self) -> None:
        self._evaluator = self._evaluator or self._least_busy()
        if self._evaluator is not None and self._duels:
            duel = self._duels[0]
            answer = self._evaluator.handle.duels.remote(duel.weights, duel.opponent)
            self._then(answer, partial(self._evaluated, self._evaluator, duel))

    def _evaluated(self, actor: _Actor, duel: _Duel, answer: Future[Any]) -> None:
        if actor is not self._evaluator or duel is not self._duels[0]:
            return
        found = self._result(actor, answer)
        if found is None:
            return
        self._duels.popleft()
        self._fruitless, actor.useful = 0, True
        self._tell("evaluated", duel.tag, found)
        self._play_next_duel()


def reason_of(error: Exception) -> str:
    """Return Ray's error message in one line; of a failed start, Python's error, which ends it."""
    if getattr(error, "actor_init_failed", False):
        return str(error).strip().rpartition("\n")[2].strip()[:300]
    return " ".join(str(error).split())[:300]


def serve(descriptor: int, slots: list[int]) -> NoReturn:
    """Carry out the order until the other end of the channel is closed, then end this process."""
    channel = Connection(descriptor)
    try:
        Driver(channel, [Slot(file) for file in slots]).run()
    except SettingsError as error:
        tell(channel, "failed", "setting", error.args, error.exit_code)
    except NotStartedError as error:
        lost(channel, str(error), "start")
    except RayTaskError as error:
        if isinstance(cause := error.cause, UserError):  # for example an error in the user's own code
            tell(channel, "failed", "setting", cause.args, cause.exit_code)
        else:
            tell(channel, "failed", "error", str(error), 1)  # our own error in an actor, with its traceback
    except (RayError, ConnectionError) as error:
        lost(channel, reason_of(error))
    except Exception:  # the learner reports any other error
        tell(channel, "failed", "error", traceback.format_exc(), 1)
    if os.environ.get("RAY_ADDRESS"):
        ray.shutdown()  # ends the actors; the supervisor ends our own processes, faster than Ray
    os._exit(0)


def lost(channel: Connection, reason: str, what: str = "lost") -> NoReturn:
    """Report the loss and exit immediately: without its cluster Ray would try to shut down for a minute."""
    if not os.environ.get("RAY_ADDRESS"):
        private.print_ray_logs()
    tell(channel, "failed", what, reason, 1)
    os._exit(private.EXIT_LOST)


def tell(channel: Connection, *message: Any) -> None:
    """Send a message, unless the other end is closed."""
    with suppress(OSError):
        channel.send(message)


class Driver:
    """Event loop of the driver: one thread handles the learner's commands and Ray's answers in turn."""

    def __init__(self, channel: Connection, slots: list[Slot]) -> None:
        self._channel, self._slots = channel, slots
        self._free = list(range(len(slots)))
        self._waiting: deque[tuple[Rollout, Arrays]] = deque()  # waiting for a free slot
        self._events: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._pool: WorkerPool | None = None
        self._ended = False

    def run(self) -> None:
        """Handle events until the learner closes its end of the channel."""
        order: Order = self._channel.recv()
        threading.Thread(target=self._listen, daemon=True).start()
        reserved = connect(order.rollout, 0 if order.describe_nodes else order.learner_threads)
        ignore_signals()  # again, because Ray installs its own handlers
        if order.describe_nodes:
            tell(self._channel, "hello", "\n".join(describe_nodes()))
            return
        pool = self._pool = WorkerPool(order, self._tell, self._events.put, reserved)
        tell(self._channel, "hello", pool.describe())
        said = 0.0
        while not self._ended:
            pool.look_after_workers()
            with suppress(queue.Empty):
                self._events.get(timeout=pool.look_seconds)()
            if time.monotonic() - said > ALIVE_SECONDS:
                said = time.monotonic()
                tell(self._channel, "alive")

    def _listen(self) -> None:
        with suppress(EOFError, OSError):
            while True:
                self._events.put(partial(self._do, self._channel.recv()))
        if self._pool is None:
            os._exit(0)  # whatever Ray is doing; the supervisor cleans up
        self._events.put(self._end)

    def _end(self) -> None:
        self._ended = True

    def _do(self, command: messages.Command) -> None:
        assert self._pool is not None  # it is made before the first event is handled
        match command:
            case messages.Free(slot):
                self._free.append(slot)
                self._send_rollouts()
            case messages.Publish(version, weights):
                self._pool.publish(version, weights)
            case messages.Submit(request):
                self._pool.submit(request)
            case messages.Evaluate(tag, weights, opponents):
                self._pool.evaluate(tag, weights, opponents)
            case _:
                assert_never(command)

    def _tell(self, name: str, *message: Any) -> None:
        """Send the pool's message to the learner, with a rollout's arrays in a shared slot."""
        if name == "rollout":
            rollout, arrays = message
            self._waiting.append((rollout, arrays))
            self._send_rollouts()
        else:
            tell(self._channel, name, *message)

    def _send_rollouts(self) -> None:
        while self._free and self._waiting:
            slot, (rollout, arrays) = self._free.pop(), self._waiting.popleft()
            tell(self._channel, "rollout", rollout, slot, self._slots[slot].write(arrays))
