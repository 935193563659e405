"""Guarantees of every kind of run."""

import io
import os
import shutil
import signal
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import Future, wait
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import pytest

from busso.train.__main__ import main
from busso.train.run import checkpoint
from busso.train.run.every import Every
from busso.train.run.folder import RunFolder
from busso.train.run.results import read_results
from busso.train.tabular.batch_q import BatchQTrainer
from busso.train.tabular.trainer import TabularTrainer
from busso.train.trainer import DqnTrainer
from tests.train.run import events
from tests.train.runs import OWN_TO_A_RUN, SMALL, TrainedRuns, equal, rows

ALWAYS = ("checkpoint.min_seconds=0", "checkpoint.max_seconds=0")
TABLE = ("episodes=30000", "log_every_episodes=10000", "checkpoint.every_episodes=8000", *ALWAYS)
BATCHES = ("iterations=5", "games=20", "passes=2", "save_every=2", "evaluation.final_deals=8")


@dataclass(frozen=True)
class Kind:
    """A small run: settings, trainer, and counters."""

    game: str
    settings: tuple[str, ...]
    trainer: type
    total: int
    unit: str
    raise_more: str
    idle_codes: tuple[int, ...]  # exit codes of consecutive starts that USR1 ends before any progress

    @property
    def arguments(self) -> tuple[str, ...]:
        return (f"game={self.game}", *self.settings, "name=small")

    def train(self, runs: Path, *more: str) -> int:
        return main([*self.arguments, f"runs={runs}", *more])

    def folder(self, runs: Path) -> Path:
        return runs / self.game / "small"


KINDS = {
    "dqn": Kind("tressette", SMALL, DqnTrainer, 256, "episodes", "episodes or minutes", (75, 1)),
    "tabular": Kind(
        "blackjack", ("algo=q_learning", *TABLE), TabularTrainer, 30_000, "episodes", "episodes or minutes", (1,)
    ),
    "batch_q": Kind("spike", ("algo=batch_q_learning", *BATCHES), BatchQTrainer, 5, "iterations", "iterations", (1,)),
}
EveryKind = pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)


@pytest.fixture(scope="module")
def uninterrupted(trained_run: TrainedRuns) -> Callable[[Kind], Path]:
    """Return the parent folder of an uninterrupted run of each kind."""
    return cache(lambda kind: trained_run.of(*kind.arguments).parents[1])


@contextmanager
def each_step(kind: Kind, then: Callable[[int], None]) -> Iterator[None]:
    """Call `then` with the number of steps after each step of a trainer."""
    step, count = kind.trainer.step, 0

    def counted(trainer: Any) -> None:
        nonlocal count
        step(trainer)
        count += 1
        then(count)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kind.trainer, "step", counted)
        yield


@contextmanager
def signal_after(kind: Kind, steps: int, number: int) -> Iterator[None]:
    with each_step(kind, lambda count: os.kill(os.getpid(), number) if count == steps else None):
        yield


def checkpoints(kind: Kind, runs: Path) -> list[Path]:
    return checkpoint.listed(kind.folder(runs) / "checkpoints")


def newest(kind: Kind, runs: Path) -> dict[str, Any]:
    return checkpoint.load(checkpoints(kind, runs)[0])


def files(folder: Path) -> set[str]:
    """Return all files but intermediate checkpoints and event files."""
    names = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
    return {name for name in names if not name.startswith(("tensorboard/", "checkpoints/episode_"))}


def assert_same_end(kind: Kind, one: Path, other: Path) -> None:
    """Check for the same bits in the last checkpoint, and the same curves, histograms, results and files."""
    found = equal(newest(kind, one), newest(kind, other))
    assert [path for path in found if path not in OWN_TO_A_RUN] == []
    first, second = kind.folder(one), kind.folder(other)
    assert rows(first) == rows(second) != []
    assert events.shown(first) == events.shown(second)
    assert files(first) == files(second) >= {"config.yaml", "metrics.csv", "train.log", "results.json"}
    results = [read_results(folder) for folder in (first, second)]
    assert None not in results
    assert results[0] | {"seconds": 0} == results[1] | {"seconds": 0}


@EveryKind
def test_a_run_that_was_stopped_twice_ends_where_an_uninterrupted_one_does(
    tmp_path: Path, kind: Kind, uninterrupted: Callable[[Kind], Path], capsys: pytest.CaptureFixture[str]
) -> None:
    for _ in range(2):
        with signal_after(kind, 2, signal.SIGTERM):
            assert kind.train(tmp_path) == 128 + signal.SIGTERM
    path = checkpoints(kind, tmp_path)[0]
    capsys.readouterr()
    assert kind.train(tmp_path) == 0
    done = int(path.stem.partition("_")[2])
    assert 0 < done < kind.total and f"resumed from {path}: {done:,} {kind.unit}" in capsys.readouterr().err
    assert_same_end(kind, uninterrupted(kind), tmp_path)


@pytest.mark.parametrize(
    ("name", "number", "code"),
    [
        ("tabular", signal.SIGINT, 130),
        ("tabular", signal.SIGTERM, 143),
        ("tabular", signal.SIGHUP, 129),
        *((name, signal.SIGUSR1, 75) for name in KINDS),
    ],
)
def test_a_stop_request_ends_with_a_checkpoint_and_its_code(
    tmp_path: Path, name: str, number: signal.Signals, code: int, capfd: pytest.CaptureFixture[str]
) -> None:
    kind = KINDS[name]
    with signal_after(kind, 3, number):
        assert kind.train(tmp_path) == code
    path, text = checkpoints(kind, tmp_path)[0], capfd.readouterr().err
    done = int(path.stem.partition("_")[2])
    assert checkpoint.load(path)["settings"]["name"] == "small" and 0 < done < kind.total
    assert "stopping with a checkpoint" in text and text.splitlines()[-1] == (
        f"stopped by {number.name} after {done:,} {kind.unit}; a checkpoint is in {path.parent}; "
        "the same command resumes"
    )


def test_checkpoints_of_a_slow_disk_are_further_apart(
    tmp_path: Path, uninterrupted: Callable[[Kind], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the test's clock a rollout takes 60 s and a checkpoint 5 s, 2% of 250 s. USR1 comes after the third."""
    kind, now, step, save = KINDS["dqn"], [0.0], DqnTrainer.step, RunFolder.save_checkpoint
    saved = list[int]()

    def steps(trainer: DqnTrainer) -> None:
        before = trainer.counters.episodes
        step(trainer)
        now[0] += 60 / 32 * (trainer.counters.episodes - before)
        if trainer.counters.episodes >= 96 and saved == [32]:
            os.kill(os.getpid(), signal.SIGUSR1)

    def slowly(folder: RunFolder, done: int, *rest: Any) -> Future[None]:
        saved.append(done)
        ended = save(folder, done, *rest)
        wait([ended])
        now[0] += 5
        return ended

    monkeypatch.setattr("busso.train.trainer.Every", partial(Every, clock=lambda: now[0]))
    monkeypatch.setattr(DqnTrainer, "step", steps)
    monkeypatch.setattr(RunFolder, "save_checkpoint", slowly)
    slow = ("checkpoint.every_episodes=32", "checkpoint.min_seconds=60", "checkpoint.max_seconds=600")
    assert [kind.train(tmp_path, *slow) for _ in range(2)] == [75, 0]
    assert saved == [32, 96, 128, 256, 256]
    line = "checkpoints are now at least 250 s apart, since one took 5.0 s"
    assert (kind.folder(tmp_path) / "train.log").read_text().count(line) == 2, "once in each start"
    found = equal(newest(kind, uninterrupted(kind)), newest(kind, tmp_path))
    assert [path for path in found if not path.startswith((*OWN_TO_A_RUN, ".settings.checkpoint", ".passed"))] == []


@EveryKind
def test_a_job_whose_starts_get_nowhere_is_not_started_for_ever(
    tmp_path: Path, kind: Kind, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    begin = kind.trainer.begin

    def interrupted(trainer: Any, runner: Any) -> None:
        begin(trainer, runner)
        os.kill(os.getpid(), signal.SIGUSR1)

    with monkeypatch.context() as patch:
        patch.setattr(kind.trainer, "begin", interrupted)
        assert tuple(kind.train(tmp_path) for _ in kind.idle_codes) == kind.idle_codes
    text = capsys.readouterr().err
    assert text.count("error: this start made no progress, and neither would the next; give the job more time") == 1
    with signal_after(kind, 1, signal.SIGUSR1):
        assert kind.train(tmp_path) == 75


@EveryKind
def test_a_damaged_newest_checkpoint_is_passed_over_with_one_warning(
    tmp_path: Path, kind: Kind, uninterrupted: Callable[[Kind], Path], capfd: pytest.CaptureFixture[str]
) -> None:
    for steps in (2, 1):
        with signal_after(kind, steps, signal.SIGTERM):
            assert kind.train(tmp_path) == 143
    damaged, before, *_ = checkpoints(kind, tmp_path)
    damaged.write_bytes(damaged.read_bytes()[:-1])
    capfd.readouterr()
    assert kind.train(tmp_path) == 0
    warning = f"{damaged}: damaged (its checksum does not match); it is renamed and the previous one is used"
    text = capfd.readouterr().err
    assert [line for line in text.splitlines() if damaged.name in line] == [warning]
    assert f"resumed from {before}:" in text
    aside = damaged.with_name(damaged.name + ".damaged")
    assert aside.exists()
    aside.unlink()
    assert_same_end(kind, uninterrupted(kind), tmp_path)


@pytest.mark.parametrize(("name", "others"), [("dqn", "tabular"), ("tabular", "batch_q"), ("batch_q", "dqn")])
def test_a_checkpoint_of_another_kind_of_run_is_refused_in_one_line(
    tmp_path: Path,
    name: str,
    others: str,
    uninterrupted: Callable[[Kind], Path],
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Unchanged, and with the right settings around the other's weights."""
    kind, other = KINDS[name], KINDS[others]
    state, own = newest(other, uninterrupted(other)), newest(kind, uninterrupted(kind))
    path = checkpoint.path_for(kind.folder(tmp_path) / "checkpoints", 1)
    path.parent.mkdir(parents=True)
    for foreign, message in (
        (state, "error: game.name: the run in"),
        (state | {"settings": own["settings"] | {"runs": str(tmp_path)}}, f"error: {path}: does not match this run"),
    ):
        checkpoint.save(path, foreign)
        bytes_before = path.read_bytes()
        capsys.readouterr()
        assert kind.train(tmp_path) == 2
        text = capsys.readouterr().err
        assert text.startswith(message) and text.count("\n") == 1 and "name=..." in text
        assert checkpoints(kind, tmp_path) == [path] and path.read_bytes() == bytes_before
        assert not (kind.folder(tmp_path) / "config.yaml").exists()


@EveryKind
def test_only_a_checkpoint_that_does_not_fit_is_an_error_of_the_user(
    tmp_path: Path, kind: Kind, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The log has its traceback; any other error is a bug and shows its own."""
    with signal_after(kind, 1, signal.SIGTERM):
        assert kind.train(tmp_path) == 143

    def failing(error: Exception) -> Callable[..., None]:
        def load_state_dict(trainer: object, state: object) -> None:
            raise error

        return load_state_dict

    capsys.readouterr()
    monkeypatch.setattr(kind.trainer, "load_state_dict", failing(ValueError("a table of (3,), not (4,)")))
    assert kind.train(tmp_path) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.endswith("does not match this run (a table of (3,), not (4,)); start another with name=...")
    assert "in load_state_dict" in (kind.folder(tmp_path) / "train.log").read_text()
    monkeypatch.setattr(kind.trainer, "load_state_dict", failing(AttributeError("no attribute 'lr'")))
    with pytest.raises(AttributeError, match="'lr'"):
        kind.train(tmp_path)


@EveryKind
def test_curves_have_no_point_twice_and_none_is_lost_when_a_run_is_cut_off(
    tmp_path: Path, kind: Kind, uninterrupted: Callable[[Kind], Path]
) -> None:
    """The power fails some time after the first checkpoint, when there are later rows."""
    saved, save = [], RunFolder.save_checkpoint

    def once(folder: RunFolder, done: int, *rest: Any) -> Future[None]:
        if saved:
            raise RuntimeError("power failure")
        saved.append(done)
        return save(folder, done, *rest)

    with pytest.MonkeyPatch.context() as patch, pytest.raises(RuntimeError, match="power failure"):
        patch.setattr(RunFolder, "save_checkpoint", once)
        kind.train(tmp_path)
    (path,) = checkpoints(kind, tmp_path)
    assert path == checkpoint.path_for(path.parent, saved[0])
    assert int(rows(kind.folder(tmp_path))[-1]["env_steps"]) > checkpoint.load(path)["counters"]["env_steps"]
    assert kind.train(tmp_path) == 0
    assert_same_end(kind, uninterrupted(kind), tmp_path)
    written = rows(kind.folder(tmp_path))
    for name, points in events.shown(kind.folder(tmp_path)).items():
        if name in written[0]:
            assert [str(step) for step, _ in points] == [row["env_steps"] for row in written if row[name]], name


@EveryKind
def test_what_was_learned_before_an_error_is_kept(
    tmp_path: Path, kind: Kind, uninterrupted: Callable[[Kind], Path]
) -> None:
    def fail(count: int) -> None:
        if count == 3:
            raise RuntimeError("something else")

    with each_step(kind, fail), pytest.raises(RuntimeError, match="something else"):
        kind.train(tmp_path)
    assert 0 < int(checkpoints(kind, tmp_path)[0].stem.partition("_")[2]) < kind.total
    assert kind.train(tmp_path) == 0
    found = equal(newest(kind, uninterrupted(kind)), newest(kind, tmp_path))
    # The next step logs, evaluates and saves in place of the failed one.
    assert [path for path in found if not path.startswith((".settings.runs", ".counters.", ".evaluat", ".run"))] == []


@pytest.mark.parametrize(
    ("name", "learns"),
    [("tabular", "busso.train.tabular.trainer.learn"), ("batch_q", "busso.train.tabular.batch_q.sweep")],
)
def test_half_a_step_of_a_table_leaves_no_trace(
    tmp_path: Path, name: str, learns: str, uninterrupted: Callable[[Kind], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error comes after the table was changed, and the step is repeated."""
    kind, calls = KINDS[name], 0
    module, _, function = learns.rpartition(".")
    real = getattr(__import__(module, fromlist=[function]), function)

    def fails(*arguments: Any) -> Any:
        nonlocal calls
        calls += 1
        result = real(*arguments)
        if calls == 3:
            raise RuntimeError("not enough of something")
        return result

    with monkeypatch.context() as patch, pytest.raises(RuntimeError, match="not enough"):
        patch.setattr(learns, fails)
        kind.train(tmp_path)
    assert kind.train(tmp_path) == 0
    assert_same_end(kind, uninterrupted(kind), tmp_path)


NEXT = [["next:"], ["busso", "report"], ["busso", "play"], ["busso", "compare"]]


@EveryKind
def test_a_complete_run_is_shown_again_and_left_as_it_is(
    kind: Kind, uninterrupted: Callable[[Kind], Path], capsys: pytest.CaptureFixture[str]
) -> None:
    runs = uninterrupted(kind)
    written = [kind.folder(runs) / "metrics.csv", checkpoints(kind, runs)[0], *kind.folder(runs).glob("tensorboard/*")]
    before = [path.read_bytes() for path in written]
    capsys.readouterr()  # output of its training, if this test is the first to need the run
    assert kind.train(runs) == 0
    first = capsys.readouterr()
    assert kind.train(runs) == 0
    second = capsys.readouterr()
    assert first.out == second.out != ""
    complete, *following = second.err.splitlines()
    assert complete == f"{kind.folder(runs)} is complete; raise {kind.raise_more} to train further"
    assert [line.split()[:2] for line in following] in (NEXT, [*NEXT[:2], *NEXT[3:]])  # nobody else has a seat
    assert [path.read_bytes() for path in written] == before
    assert set(kind.folder(runs).glob("tensorboard/*")) == set(written[2:])


@pytest.mark.parametrize("name", ["dqn", "batch_q"])
def test_a_stop_request_while_the_results_are_made(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another start makes them, but a job that never has the time is not restarted forever."""
    kind = KINDS[name]
    report, path = kind.trainer.report, kind.folder(tmp_path) / "results.json"

    def stopped(trainer: Any, stop_requested: Callable[[], bool]) -> None:
        os.kill(os.getpid(), signal.SIGUSR1)
        report(trainer, stop_requested)

    with monkeypatch.context() as patch:
        patch.setattr(kind.trainer, "report", stopped)
        assert [kind.train(tmp_path), kind.train(tmp_path)] == [75, 1]
    assert not path.exists()
    assert kind.train(tmp_path) == 0 and path.exists()


class NoReader(io.StringIO):
    """Standard output whose reader has ended."""

    def write(self, text: str) -> int:
        raise BrokenPipeError(32, "Broken pipe")


@EveryKind
def test_a_run_has_its_results_whatever_becomes_of_the_screen(
    tmp_path: Path, kind: Kind, uninterrupted: Callable[[Kind], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A complete run without results computes them: in a folder that looks like markup, with no reader."""
    runs = tmp_path / "[" / "x]"
    shutil.copytree(uninterrupted(kind), runs)
    path = kind.folder(runs) / "results.json"
    before = path.read_text()
    path.unlink()
    assert main([*kind.arguments, f"runs='{runs}'"]) == 0 and path.read_text() == before
    path.unlink()
    monkeypatch.setattr(sys, "stdout", NoReader())
    assert main([*kind.arguments, f"runs='{runs}'"]) == 0 and path.read_text() == before
