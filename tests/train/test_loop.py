"""Local runs: bit-identical repetitions, and resumed equals uninterrupted."""

from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch

from busso.cards.duplicate import Duel
from busso.train.players.trained import check_players
from busso.train.rollout.backend import LocalBackend
from busso.train.rollout.request import RolloutRequest
from busso.train.run import checkpoint
from busso.train.run.every import Every
from busso.train.run.folder import RunFolder
from busso.train.run.runner import Runner
from busso.train.trainer import DqnTrainer
from tests.chips import emulated_chip
from tests.train.runs import OWN_TO_A_RUN, TARGET_NETWORK, equal, folder, rows, settings

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
