"""Stop request during an evaluation: it is aborted, and the next start repeats it."""

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from busso.train.__main__ import main
from busso.train.rollout.worker import Evaluator
from busso.train.run.results import read_results
from tests.limits import seconds
from tests.train.runs import OWN_TO_A_RUN, TrainedRuns, equal, folder, newest, small

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
