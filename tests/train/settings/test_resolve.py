"""What a command line means on this machine: which rollouts, by one recipe everywhere."""

from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from command.settings.checks import SettingsError
from tests.errors import error_about
from tests.train.runs import small
from train.__main__ import main
from train.settings.dqn import TrainSettings
from train.settings.resolve import Chosen, Machine, resolve

LAPTOP, GPU_NODE = Machine(gpu=False, cpus=4), Machine(gpu=True, cpus=16)


def dqn(chosen: Chosen) -> TrainSettings:
    assert isinstance(chosen.settings, TrainSettings)
    return chosen.settings


@pytest.fixture(autouse=True)
def _nothing_else_there(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No cluster, and no runs of somebody who has tried `make train` before the tests."""
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("machine", "overrides", "kind", "games", "actor_threads", "says"),
    [
        (LAPTOP, [], "ray", 512, None, "rollout=auto: ray, since the learner has no GPU"),
        (GPU_NODE, [], "threads", 1562, 8, "rollout=auto: threads, since the learner has a GPU, on one node"),
        (GPU_NODE, ["learner.threads=15"], "threads", 3906, 2, "threads"),
        (GPU_NODE, ["device=cpu"], "ray", 512, None, "the learner has no GPU"),
        (LAPTOP, ["device=cuda:1"], "threads", 3125, 3, "the learner has a GPU"),
        (GPU_NODE, ["rollout.nodes=2"], "ray", 512, None, "the run is on several nodes"),
        (GPU_NODE, ["rollout.workers=4"], "ray", 512, None, "rollout.workers is given"),
        (GPU_NODE, ["rollout.gpus_per_worker=0.1", "rollout.games=64"], "ray", 64, None, "gpus_per_worker is given"),
        (LAPTOP, ["rollout.actor_threads=2"], "threads", 512, 2, "rollout.actor_threads is given"),
        (LAPTOP, ["rollout=threads"], "threads", 512, 3, ""),
        (LAPTOP, ["rollout=threads", "learner.threads=4"], "threads", 512, 1, ""),
        (GPU_NODE, ["rollout=local"], "local", 512, None, ""),
        (GPU_NODE, ["rollout=device"], "device", 1_000_000 // 128, None, ""),
        (GPU_NODE, ["rollout=device", "rollout.games=100"], "device", 100, None, ""),
        (GPU_NODE, ["rollout=ray"], "ray", 512, None, ""),
    ],
)
def test_rollouts_of_a_machine(
    machine: Machine, overrides: list[str], kind: str, games: int, actor_threads: int | None, says: str
) -> None:
    chosen = resolve(overrides, machine)
    rollout = dqn(chosen).rollout
    assert (rollout.kind, rollout.games, rollout.actor_threads) == (kind, games, actor_threads)
    notes = [note for note in chosen.notes if note.startswith("rollout=auto")]
    assert len(notes) == bool(says) and says in "".join(notes)


def test_a_cluster_that_is_named_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAY_ADDRESS", "127.0.0.1:6379")
    assert dqn(resolve([], GPU_NODE)).rollout.kind == "ray"


def test_settings_of_ray_and_of_threads_do_not_mix() -> None:
    with error_about(SettingsError, "rollout.workers", hint="leave one out"):
        resolve(["rollout.workers=2", "rollout.actor_threads=2"], LAPTOP)
    with error_about(SettingsError, "rollout.workers"):
        resolve(["rollout=threads", "rollout.workers=2"], LAPTOP)
    assert dqn(resolve(["rollout=threads", "rollout.workers=2", "rollout.nodes=2"], LAPTOP)).rollout.workers == 2
    for given in (["rollout=local", "rollout.actor_threads=2"], ["rollout=ray", "rollout.actor_threads=2"]):
        with error_about(SettingsError, "rollout.actor_threads", hint="--cfg"):
            resolve(given, LAPTOP)
    with error_about(SettingsError, "rollout.actor_threads"):
        resolve(["rollout=threads", "rollout.actor_threads=0"], LAPTOP)


def test_one_recipe_on_every_machine() -> None:
    for given in ([], ["learner.lr=5e-4"]):
        there, here = dqn(resolve(given, GPU_NODE)), dqn(resolve(given, LAPTOP))
        assert replace(there, rollout=here.rollout) == here
    assert dqn(resolve(["experiment=gpu"], LAPTOP)).learner.batch_size == 16384


@pytest.mark.parametrize(
    "given", [[], ["game=spike", "minutes=1"], ["experiment=spike_n"], ["experiment=gpu", "rollout=local"], ["algo=td"]]
)
def test_a_start_composes_once(given: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    import hydra

    composed = list[str]()
    compose = hydra.compose
    monkeypatch.setattr(hydra, "compose", lambda name, overrides: composed.append(name) or compose(name, overrides))
    monkeypatch.setattr("train.__main__.train", lambda chosen: 0)
    assert main(given) == 0 and composed == ["train"]


def test_so_few_games_at_a_time_that_buffer_and_budget_hold_them(tmp_path: Path) -> None:
    """With 15 CPUs for 8 blocks, 10 rollouts are out: of 64 decisions a game at most, and 50 times in a budget."""
    runs = f"runs={tmp_path}"
    many = Machine(gpu=True, cpus=128)
    default = dqn(resolve([runs], many)).rollout
    assert (default.actor_threads, default.games) == (8, 1_000_000 // (64 * 10))
    assert dqn(resolve([runs, "episodes=400000"], many)).rollout.games == 400_000 // (50 * 10)
    assert dqn(resolve([runs, "episodes=1000"], many)).rollout.games == 512
    assert dqn(resolve([runs, "episodes=1000", "rollout.games=9"], many)).rollout.games == 9
    assert dqn(resolve([runs, "experiment=study_tressette"], many)).rollout.games == 512


def test_what_was_chosen_is_printed_and_logged(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("train.__main__.this_machine", lambda: Machine(gpu=False, cpus=3))
    auto = ["rollout=auto", "rollout.actor_threads=1", "rollout.games=32"]
    assert main([*small(tmp_path, "episodes=64"), *auto, "--cfg"]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("# rollout=auto: threads, since rollout.actor_threads is given\n")
    assert yaml.safe_load(printed)["rollout"]["kind"] == "threads"
    assert main([*small(tmp_path, "episodes=64"), *auto]) == 0
    log = (tmp_path / "tressette" / "small" / "train.log").read_text()
    assert log.count("rollout=auto: threads, since rollout.actor_threads is given") == 1
