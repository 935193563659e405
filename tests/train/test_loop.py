"""Local runs: bit-identical repetitions, resumed equals uninterrupted, updates in step with requests."""

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from busso.cards.duplicate import Duel
from busso.train.__main__ import main
from busso.train.players.trained import check_players
from busso.train.requests import RequestQueue
from busso.train.rollout.backend import LocalBackend
from busso.train.rollout.request import EpisodeReturn, Rollout, RolloutRequest
from busso.train.rollout.worker import Evaluator
from busso.train.run import checkpoint
from busso.train.run.budget import Budget
from busso.train.run.every import Every
from busso.train.run.folder import RunFolder
from busso.train.run.results import read_results
from busso.train.run.runner import Runner
from busso.train.trainer import DqnTrainer
from tests.chips import emulated_chip
from tests.limits import seconds
from tests.train.runs import OWN_TO_A_RUN, TARGET_NETWORK, TrainedRuns, equal, folder, newest, rows, settings, small

CPU = torch.device("cpu")


def run(
    runs: Path, *overrides: str, stop_after: int | None = None, backend: type[LocalBackend] = LocalBackend
) -> dict[str, Any]:
    """Train until `stop_after` episodes are learned from, and return the latest checkpoint."""
    chosen = settings(runs, *overrides)
    with RunFolder(chosen) as folder:
        trainer = DqnTrainer(chosen, folder, CPU, backend(chosen, CPU), check_players(chosen))
        Runner(trainer, folder, lambda: stop_after is not None and trainer.counters.episodes >= stop_after).run()
        found = checkpoint.load_newest(folder.checkpoints)
    assert found is not None
    return found.state


def differences(a: dict[str, Any], b: dict[str, Any]) -> list[str]:
    """Compare all but the folder and the run time."""
    return [path for path in equal(a, b) if path not in OWN_TO_A_RUN]


MIXTURE = (
    "opponents.phases=[{until: 150, mix: {network: 0.4, study_heuristic: 0.6}}, {until: null, mix: {network: 1.0}}]"
)
VARIANTS = {
    "lambda_returns": ["network.dueling=true", "game.reward=study", MIXTURE],
    "target_network": [
        *TARGET_NETWORK,
        "target.n_step=3",
        "target.tau=0",
        "target.update_interval=10",
        "learner.muon=0",
        "learner.ema_decay=0",
        "learner.loss=huber",
        "learner.gamma=0.99",
        "network.symmetric=false",
        MIXTURE,
    ],
}


@pytest.mark.parametrize("variant", VARIANTS)
def test_resumed_equals_uninterrupted_bit_for_bit(tmp_path: Path, variant: str) -> None:
    whole = run(tmp_path / "a", *VARIANTS[variant])
    assert whole["counters"]["episodes"] == 256
    assert whole["learner"]["updates"] == whole["counters"]["inserted"] // 2 // 64 > 30
    for episodes in (64, 96, 150, 192):
        run(tmp_path / "b", *VARIANTS[variant], stop_after=episodes)
    resumed = run(tmp_path / "b", *VARIANTS[variant])
    assert differences(whole, resumed) == []
    first, second = (rows(folder(tmp_path / x)) for x in "ab")
    assert first == second


def test_a_run_goes_on_on_another_chip(tmp_path: Path) -> None:
    """A network trained in one format is played in the other."""
    with emulated_chip("bfloat16"):
        run(tmp_path, stop_after=128)
    with emulated_chip("float32_one_dnn"):
        assert run(tmp_path)["counters"]["episodes"] == 256


def test_learning_rate_and_epsilon_reach_their_ends(tmp_path: Path) -> None:
    run(tmp_path, "learner.lr=1e-3", "learner.lr_end=0")
    last = [row for row in rows(folder(tmp_path)) if row["train/lr"]][-1]
    assert float(last["train/lr"]) == 0 and float(last["rollout/epsilon"]) == 0.05


class Waiting(LocalBackend):
    """Backend whose evaluations never finish."""

    def evaluated(self, wait: bool) -> list[tuple[int, dict[str, Duel]]]:
        return []


def test_a_stop_request_ends_the_last_evaluation(tmp_path: Path) -> None:
    """The weights are saved before it, and the next start evaluates."""
    chosen = settings(tmp_path, "evaluation.every_episodes=1000", "episodes=128")
    seen: list[int] = []
    with RunFolder(chosen) as folder:
        trainer = DqnTrainer(chosen, folder, CPU, Waiting(chosen, CPU), check_players(chosen))

        def stop_requested() -> bool:
            if trainer.evaluations.under_way:
                folder.writer.wait()
                found = checkpoint.load_newest(folder.checkpoints)
                seen.append(found.state["counters"]["episodes"] if found else 0)
            return len(seen) > 2

        assert not Runner(trainer, folder, stop_requested).run()
        assert trainer.finished() and set(seen) == {128}
    state = run(tmp_path, "evaluation.every_episodes=1000", "episodes=128")
    assert state["counters"]["evaluated"] == state["counters"]["env_steps"] == 128 * 40


@pytest.mark.parametrize(
    ("most", "evaluated"), [(600, [32, 192, 256]), (25, [32, 160, 256]), (0, [*range(32, 257, 32)])]
)
def test_expensive_evaluations_are_spaced_out(
    tmp_path: Path, most: int, evaluated: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each takes 1 s, and 32 games take 10 s: 3% allow one in 33 s; `max_seconds` allows more."""
    now = [0.0]

    class TimedPlayer(LocalBackend):
        def submit(self, request: RolloutRequest) -> None:
            now[0] += 0.0 if self._evaluations else 10.0  # time stands still while a finished evaluation waits
            super().submit(request)

        def evaluate(self, *what: Any) -> None:
            now[0] += 1.0
            super().evaluate(*what)

    monkeypatch.setattr("busso.train.trainer.Every", partial(Every, clock=lambda: now[0]))
    spaced = ("evaluation.every_episodes=32", "evaluation.min_seconds=1", f"evaluation.max_seconds={most}")
    run(tmp_path, *spaced, backend=TimedPlayer)
    assert evaluations(tmp_path) == evaluated


def evaluations(runs: Path) -> list[int]:
    """Return the episodes after which the network was evaluated."""
    return [int(row["env_steps"]) // 40 for row in rows(folder(runs)) if row["eval/win_rate_vs_random"]]


def test_an_evaluation_that_fell_due_while_another_ran_is_made_up_for(tmp_path: Path) -> None:
    class Slow(LocalBackend):
        """Backend whose evaluations finish six rollouts later."""

        late = 0

        def evaluated(self, wait: bool) -> list[tuple[int, dict[str, Duel]]]:
            self.late += bool(self._evaluations)
            return super().evaluated(wait) if self.late % 6 == 0 else []

    run(tmp_path, "evaluation.every_episodes=128", "episodes=512", backend=Slow)
    # The second was due at 256 and begins when the first is done, not at 384; the last weights come last.
    assert evaluations(tmp_path) == [128, 128 + 6 * 32, 512]


SLOW = "evaluation.opponents=[monte_carlo:samples:100000]"  # 0.4 s a decision: an evaluation takes minutes


@contextmanager
def signal_in(name: str, number: int, after: float = 0.0, times: int = 1) -> Iterator[list[float]]:
    """Send the signal in `times` evaluations of this name, `after` seconds from their start; yield the times."""
    duels, came = Evaluator.duels, list[float]()

    def send() -> None:
        came.append(time.monotonic())
        os.kill(os.getpid(), number)

    def interrupted(evaluator: Evaluator, weights: Any, stream_name: str, *rest: Any) -> Any:
        if stream_name == name and len(came) < times:
            if after:
                threading.Timer(after, send).start()
            else:
                send()
        return duels(evaluator, weights, stream_name, *rest)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Evaluator, "duels", interrupted)
        yield came


def test_an_evaluation_against_a_player_that_searches_ends_at_once(tmp_path: Path) -> None:
    arguments = small(tmp_path, SLOW, "evaluation.deals=16")
    with signal_in("evaluation", signal.SIGTERM, after=0.5) as came:
        assert main(arguments) == 143
    assert time.monotonic() - came[0] < seconds(3)
    state = newest(tmp_path)
    assert [tag for tag, _ in state["evaluating"]] and state["counters"]["evaluated"] == -1


def test_an_evaluation_that_was_stopped_is_made_again_and_the_bits_stay(
    tmp_path: Path, trained_run: TrainedRuns
) -> None:
    uninterrupted, starts = trained_run(), 1
    with signal_in("evaluation", signal.SIGUSR1, times=2):
        while (code := main(small(tmp_path))) == 75:
            assert newest(tmp_path)["evaluating"]
            starts += 1
    assert code == 0 and starts == 3
    found = equal(newest(tmp_path), newest(uninterrupted.parents[1]))
    assert [path for path in found if path not in OWN_TO_A_RUN] == []
    assert read_results(folder(tmp_path)) == read_results(uninterrupted)


ROWS, BATCH, WORKERS = 20_480, 1024, 4  # at 0.5 samples per insert a rollout pays for 10 updates
TICKS = 4000


def rollout_of(request: RolloutRequest, version: int = 0) -> Rollout:
    rows: Any = SimpleNamespace(action=range(ROWS))
    return Rollout(request, rows, ROWS, version, EpisodeReturn(0.0, 0.0))


class Workers:
    """Simulated workers: `speed` rollouts per tick, two requests each; `waited` counts ticks in which one had none."""

    def __init__(self, speed: float, concurrent: bool) -> None:
        self.speed, self.concurrent, self.played, self.waited = speed, concurrent, 0.0, 0
        self.most_out = self.most_due = 0  # greatest numbers of requests and of updates due
        self.asked: list[RolloutRequest] = []
        self.done: list[Rollout] = []

    def tick(self) -> None:
        """Play one tick."""
        self.waited += len(self.asked) < WORKERS
        self.played += self.speed * min(len(self.asked), WORKERS)
        while self.played >= 1 and self.asked:
            self.played -= 1
            self.done.append(rollout_of(self.asked.pop(0)))

    def workers(self) -> int:
        return WORKERS

    def free_slots(self) -> int:
        return 2 * WORKERS - len(self.asked) - len(self.done)

    def wants_weights(self) -> bool:
        return False

    def submit(self, request: RolloutRequest) -> None:
        self.asked.append(request)
        self.most_out = max(self.most_out, len(self.asked) + len(self.done))

    def ready(self, wait: bool) -> list[Rollout]:
        return [self.done.pop(0)] if self.done else []


class Learner:
    """Simulated learner: one update per tick."""

    def __init__(self) -> None:
        self.updates, self.device = 0, torch.device("cpu")
        self.replay = SimpleNamespace(size=10**6, add=lambda _: None)


def queue(
    tmp_path: Path, speed: float, *overrides: str, concurrent: bool = True
) -> tuple[RequestQueue, Workers, Learner]:
    chosen = settings(tmp_path, "rollout=ray", f"learner.batch_size={BATCH}", "episodes=100000000", *overrides)
    workers, learner = Workers(speed, concurrent), Learner()
    return RequestQueue(chosen, workers, learner, Budget(None, None)), workers, learner  # type: ignore[arg-type]


def simulated(
    tmp_path: Path, speed: float, *overrides: str, concurrent: bool = True
) -> tuple[RequestQueue, Workers, Learner, float]:
    """Return a run's requests, workers and learner after TICKS, and the samples per insert in its second half."""
    (requests, workers, learner), half = queue(tmp_path, speed, *overrides, concurrent=concurrent), 0
    for tick in range(TICKS):
        requests.submit_pending()
        requests.take(wait=False)
        workers.most_due = max(workers.most_due, requests.updates_due())
        learner.updates += min(1, requests.updates_due())
        workers.tick()
        if tick == TICKS // 2:
            half = requests.counters.env_steps
            workers.waited = 0
            before = learner.updates
    return requests, workers, learner, (learner.updates - before) * BATCH / (requests.counters.env_steps - half)


FALLING = "learner.samples_floor=0.25"


@pytest.mark.parametrize(
    ("speed", "samples", "waits", "busy"),
    [
        (0.02, 0.5, False, 0.8),  # 0.8 updates per tick are due
        (0.05, 0.25, False, 1.0),  # 2: half as many
        (0.5, 0.125, True, 1.0),  # 20: at the lowest ratio 5 are due, still too many
    ],
)
def test_a_fast_producer(tmp_path: Path, speed: float, samples: float, waits: bool, busy: float) -> None:
    _, workers, learner, found = simulated(tmp_path, speed, FALLING)
    assert found == pytest.approx(samples, rel=0.02)
    assert (workers.waited > 0) == waits
    assert learner.updates == pytest.approx(busy * TICKS, rel=0.03)


def test_without_a_floor_they_wait(tmp_path: Path) -> None:
    """Requests in flight are limited, and with them the rollouts in Ray's object store."""
    requests, workers, _, found = simulated(tmp_path, 0.05)
    assert found == pytest.approx(0.5, rel=0.02) and workers.waited and requests.counters.forgiven == 0
    # Playing may lead by one rollout of each worker, and the two of each in flight may arrive later.
    assert workers.most_out == 2 * WORKERS and workers.most_due <= 3 * WORKERS * 10


def test_what_it_pays_is_said_once_and_kept(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    requests, *_ = simulated(tmp_path, 0.05, FALLING)
    with caplog.at_level("INFO", logger="train"):
        requests.log_row()
        for _ in range(3):
            requests.counters.row_env_steps = 2 * ROWS  # these pay for 20 updates, of which 10 were forgiven
            requests.counters.forgiven += 10
            requests.log_row()
    (line,) = [record.getMessage() for record in caplog.records]
    assert "now 0.25" in line and f"{WORKERS} workers" in line
    again, *_ = simulated(tmp_path, 0.05, FALLING)
    again.load_state_dict(requests.state_dict())
    assert again.counters.forgiven == requests.counters.forgiven > 0


def test_in_turn_nothing_falls(tmp_path: Path) -> None:
    requests, _, _, found = simulated(tmp_path, 0.05, FALLING, concurrent=False)
    assert found == pytest.approx(0.5, rel=0.02) and requests.counters.forgiven == 0


def test_rollouts_of_weights_that_are_too_old_are_not_learned_from(tmp_path: Path) -> None:
    """The same episodes are requested again."""
    requests, _, learner = queue(tmp_path, 1.0, "rollout.max_weights_age=40")
    requests.submit_pending()
    first, second, *_ = requests.in_flight.values()
    learner.updates = 42
    requests.insert(rollout_of(first, version=1))
    requests.insert(rollout_of(second, version=2))
    assert requests.counters.too_old == 1 and requests.counters.episodes == second.count
    assert requests.next() == replace(first, epsilon=requests.epsilon())


def test_open_requests_keep_their_attempt_and_are_played_in_pieces(tmp_path: Path) -> None:
    """A backend of larger requests began some of them."""
    requests, _, _ = queue(tmp_path, 1.0, "rollout.games=32")
    requests.unplayed = [RolloutRequest(64, 80, 0.5, 3), RolloutRequest(200, 5, 0.5)]
    state = requests.state_dict()
    assert state["open_requests"] == [[64, 80, 3], [200, 5, 0]]
    again, _, _ = queue(tmp_path, 1.0, "rollout.games=32")
    again.load_state_dict(state)
    found = [replace(request, epsilon=1.0) for request in (again.next() for _ in range(4)) if request]
    pieces = [(64, 32, 1.0, 3), (96, 32, 1.0, 3), (128, 16, 1.0, 3), (200, 5, 1.0)]
    assert found == [RolloutRequest(*piece) for piece in pieces] and not again.unplayed
