"""Runs that 0.3.0 left behind play, and resume to what 0.3.0 would have learned from there."""

import shlex
import shutil
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
import yaml
from torch import Tensor

import busso
from busso.cards.compiled.splitmix import stream
from busso.cards.play import play
from busso.command.settings.checks import SettingsError
from busso.train.__main__ import main
from busso.train.api import with_players
from busso.train.dqn.players.load import load_network
from busso.train.run.checkpoint import checkpoint
from busso.train.run.folder import RunFolder
from busso.train.settings.resolve import resolve as resolved
from tests.errors import error_about

OLD = Path(__file__).parent / "old_runs"
# Of the way that the weights have gone since: what rounding differs by is below 1e-5. The least that anything forgotten
# of the optimizer or the target network costs one of the runs is 0.05, without Adam's moments it is half of the way.
TOLERANCE = 0.005
TINY = (
    *("device=cpu", "rollout=local", "rollout.games=16", "network.hidden=[8,8]", "learner.precision=float32"),
    *("learner.learning_starts=64", "learner.batch_size=16", "learner.samples_per_insert=2.0"),
    *("learner.threads=1", "exploration.start=1", "exploration.end=1", "checkpoint.keep=1"),
    *("evaluation.every_episodes=200", "evaluation.min_seconds=0", "evaluation.opponents=[random]"),
    *("evaluation.deals=8", "evaluation.final_deals=8"),
)
FEW = ("rollout.games=2", "learner.samples_per_insert=0.5")
TWO = ("learner.n_step=2",)


class OldRun(NamedTuple):
    """A run of 0.3.0, and how it goes on."""

    game: str
    until: int  # episodes
    overrides: tuple[str, ...] = ()


RUNS = {
    "adam": OldRun("sette_mezzo", 256, TWO),
    "muon": OldRun("tressette", 32, FEW),
    "prioritised": OldRun(
        "spike",
        32,
        (
            *(*FEW, *TWO, "network.inputs=64", "learner.double=true", "learner.loss=huber"),
            *("learner.target_tau=0", "learner.target_update_interval=10", "learner.ema_decay=0"),
        ),
    ),
    "threads": OldRun("sette_mezzo", 1536, TWO),
    "replicas": OldRun("sette_mezzo", 768, TWO),
}


def copied(name: str, runs: Path) -> Path:
    """The checkpoints of a run, copied to where it can go on."""
    folder = runs / RUNS[name].game / name
    shutil.copytree(OLD / name, folder)
    return folder / "checkpoints"


def newest(checkpoints: Path) -> dict[str, Any]:
    """The newest state of a run."""
    return checkpoint.load(checkpoint.listed(checkpoints)[0])


def found_by(*overrides: str) -> Path | None:
    """The checkpoint that this command line would go on with."""
    return RunFolder(with_players(resolved(overrides)).settings).newest()


def resume(name: str, runs: Path, *overrides: str, more: int = 0) -> dict[str, Any]:
    """The state of a run after it has resumed until `until`, or `more` episodes beyond."""
    run = RUNS[name]
    given = [f"game={run.game}", f"name={name}", f"runs={runs}", f"episodes={run.until + more}"]
    assert main([*given, *TINY, *run.overrides, *overrides]) == 0
    return newest(runs / run.game / name / "checkpoints")


@pytest.mark.parametrize("name", RUNS)
def test_the_best_network_of_an_old_run_plays(name: str) -> None:
    path = OLD / name / "checkpoints" / checkpoint.BEST
    state = checkpoint.load(path)
    player, settings = load_network(None, path, state, torch.device("cpu"))
    loaded = player._network.state_dict()
    assert loaded.keys() == state["acting"].keys()
    assert all(loaded[key].equal(stored.to(loaded[key].dtype)) for key, stored in state["acting"].items())
    game = settings.load_game()
    seats = np.zeros((4, game.seats), np.uint8)
    states, _ = play(game, stream(1, "old", 0, 4), [player], seats)
    assert bool(np.all(game.over(states, np.arange(4))))


def distance(a: dict[str, Tensor], b: dict[str, Tensor]) -> float:
    """The Euclidean distance of two sets of weights."""
    assert a.keys() == b.keys()
    return float(sum((a[key] - b[key]).square().sum() for key in a) ** 0.5)


@pytest.mark.parametrize("name", [name for name in RUNS if name not in ("prioritised", "replicas")])
def test_an_old_run_learns_on_as_it_would_have(name: str, tmp_path: Path) -> None:
    before = newest(copied(name, tmp_path))
    after, learned = resume(name, tmp_path), torch.load(OLD / "learned.pt", weights_only=True)[name]
    assert after["counters"]["episodes"] == RUNS[name].until and after["open_requests"] == []
    assert after["run"] == before["run"]
    weights, way = after["learner"]["online"], distance(learned, before["learner"]["online"])
    assert distance(weights, learned) < TOLERANCE * way


def test_an_old_run_keeps_its_recipe_and_gets_another_buffer(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As far as nothing else is typed: 0.3.0 had no lambda returns, and other numbers."""
    copied("muon", tmp_path)
    used = resume("muon", tmp_path)["settings"]
    assert used["learner"]["td_lambda"] is None and used["exploration"]["fraction"] == 0.03
    assert used["replay"]["capacity"] == 200
    state = resume("muon", tmp_path, "replay.capacity=300", more=32)
    assert state["replay"]["capacity"] == 300 and state["counters"]["episodes"] == RUNS["muon"].until + 32
    assert "replay.capacity was 200 and is 300: the replay buffer starts empty" in capsys.readouterr().err


def test_lambda_returns_name_no_setting_without_effect(tmp_path: Path) -> None:
    """What a refused start says can be typed as it stands."""
    (path, *_) = checkpoint.listed(copied("muon", tmp_path))
    state = checkpoint.load(path)
    state["settings"]["learner"]["td_lambda"] = 0.6
    checkpoint.save(path, state)
    (tmp_path / "tressette" / "muon" / "config.yaml").write_text(yaml.safe_dump(state["settings"]))
    found = partial(found_by, f"runs={tmp_path}", "name=muon", "episodes=64", *TINY, *FEW)
    with error_about(SettingsError, "learner.td_lambda", "started with 0.6, not None", "it with learner.td_lambda=0.6"):
        found("learner.n_step=4")
    assert found() == found("learner.td_lambda=0.6") == path


def test_a_run_with_priorities_goes_on_without(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With the rows that it had; all are drawn alike."""
    before = newest(copied("prioritised", tmp_path))
    after = resume("prioritised", tmp_path)
    assert after["counters"]["episodes"] == RUNS["prioritised"].until and "drawn alike" in capsys.readouterr().err
    assert after["replay"]["inserted"] > before["replay"]["inserted"] > 0
    assert distance(after["learner"]["online"], before["learner"]["online"]) > 0.001


def test_a_run_of_two_learners_goes_on_with_one(tmp_path: Path) -> None:
    """It plays all episodes, and makes as many updates for a game as one learner; after two starts no share is left."""
    checkpoints = copied("replicas", tmp_path)
    assert (checkpoints / "replica_1").is_dir()
    before = newest(checkpoints)
    for more in (0, 64):
        after = resume("replicas", tmp_path, more=more)
        counters, made = after["counters"], after["learner"]["updates"] - before["learner"]["updates"]
        assert counters["episodes"] == counters["next_episode"] - counters["lost"] == RUNS["replicas"].until + more
        rows = counters["env_steps"] - before["counters"]["env_steps"]
        assert made == pytest.approx(rows * 2.0 / 16, abs=1.5)
        assert distance(after["learner"]["online"], before["learner"]["online"]) > 0.001
        before = after
    assert not list(checkpoints.glob("replica_*"))


def test_settings_that_are_gone_are_replaced(tmp_path: Path) -> None:
    """Of a run by `rollout=device` in float16, as far as its settings go; in config.yaml and in the checkpoint."""
    checkpoints = copied("adam", tmp_path)
    config, (path, *_) = checkpoints.parent / "config.yaml", checkpoint.listed(checkpoints)
    state, gone = checkpoint.load(path), {"kind": "device", "games": None, "actor_threads": 2}
    state["settings"]["rollout"] |= gone
    state["settings"]["learner"]["precision"] = "float16"
    checkpoint.save(path, state)
    config.write_text(yaml.safe_dump(state["settings"]))
    settings = busso.load_run(checkpoints.parent).settings
    assert (settings.rollout.kind, settings.rollout.games, settings.learner.precision) == ("ray", 512, "auto")
    assert load_network(None, path, checkpoint.load(path), torch.device("cpu"))[1].rollout == settings.rollout
    assert resume("adam", tmp_path, "learner.precision=auto")["counters"]["episodes"] == RUNS["adam"].until


def test_a_run_that_had_other_settings_for_its_minutes_says_how_it_resumes(tmp_path: Path) -> None:
    """Of 60 minutes and more: its `longer` gave it the settings that an experiment has now."""
    (path, *_) = checkpoint.listed(copied("muon", tmp_path))
    state = checkpoint.load(path)
    (longer,) = state["settings"]["longer"]
    state["settings"]["network"]["hidden"] = longer["hidden"]
    state["settings"]["learner"]["muon"] = longer["muon"]
    checkpoint.save(path, state)
    same = [each for each in (*TINY, *FEW) if not each.startswith("network.hidden")]
    found = partial(found_by, f"runs={tmp_path}", "name=muon", "minutes=60", *same)
    with error_about(SettingsError, "learner.muon", "started with 0.0, not 4.0", "learner.muon=0.0") as refused:
        found()
    typed = shlex.split(refused.value.hint.partition("resume it with ")[2])
    assert "network.hidden=[192,192,192,192]" in typed
    assert found(*typed) == found("experiment=hour") == path
