"""What a command line means on this machine: which rollouts, and whether the recipe for a GPU is taken."""

from pathlib import Path

import pytest
import yaml

from command.settings.checks import SettingsError
from command.settings.compose import as_yaml
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
    ("machine", "overrides", "kind", "games", "blocks", "says"),
    [
        (LAPTOP, [], "ray", 512, None, "rollout=auto: ray, since the learner has no GPU"),
        (GPU_NODE, [], "threads", 16384, 8, "rollout=auto: threads, since the learner has a GPU, on one node"),
        (GPU_NODE, ["learner.threads=15"], "threads", 16384, 2, "threads"),
        (GPU_NODE, ["device=cpu"], "ray", 512, None, "the learner has no GPU"),
        (LAPTOP, ["device=cuda:1"], "threads", 16384, 3, "the learner has a GPU"),
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
    machine: Machine, overrides: list[str], kind: str, games: int, blocks: int | None, says: str
) -> None:
    chosen = resolve(overrides, machine)
    rollout = dqn(chosen).rollout
    assert (rollout.kind, rollout.games, rollout.actor_threads) == (kind, games, blocks)
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


def test_the_recipe_of_a_gpu_is_taken_where_nothing_else_is_named(tmp_path: Path) -> None:
    runs = f"runs={tmp_path}"
    recipe = dqn(resolve(["experiment=gpu", runs], LAPTOP))
    chosen = resolve([runs], GPU_NODE)
    assert recipe.name == "gpu" and dqn(chosen).name == "default"
    assert dqn(chosen).learner == recipe.learner and recipe.learner.batch_size == 16384
    assert chosen.notes[0].startswith("experiment=gpu: the learner has a GPU; experiment=null is without it")
    assert dqn(resolve([runs, "learner.batch_size=64", "name=x"], GPU_NODE)).learner.batch_size == 64
    plain = dqn(resolve([runs], LAPTOP))
    assert plain.learner.batch_size == 1024
    for named in ("experiment=study_tressette", "experiment=null", "~experiment", "rollout=threads", "device=cpu"):
        assert dqn(resolve([runs, named], GPU_NODE)).learner.batch_size != 16384, named
    assert resolve(["algo=q_learning", "game=blackjack"], GPU_NODE).notes == ()
    assert dqn(resolve([runs, "game=spike"], GPU_NODE)).learner.batch_size == 1024  # with another it was not tried


def test_the_recipe_of_one_node_is_not_taken_on_several(tmp_path: Path) -> None:
    chosen = dqn(resolve([f"runs={tmp_path}", "rollout.nodes=2"], GPU_NODE))
    assert (chosen.rollout.kind, chosen.learner.batch_size) == ("ray", 1024)


def test_so_few_games_at_a_time_that_buffer_and_budget_hold_them(tmp_path: Path) -> None:
    """With 15 CPUs for 8 blocks, 10 rollouts are out: of 64 decisions a game at most, and 50 times in a budget."""
    runs = f"runs={tmp_path}"
    many, cpus = Machine(gpu=True, cpus=128), "rollout=threads"
    default = dqn(resolve([runs], many)).rollout
    assert (default.blocks, default.games) == (8, 16_384)
    assert dqn(resolve([runs, cpus], many)).rollout.games == 1_000_000 // (64 * 10)
    assert dqn(resolve([runs, "episodes=400000"], many)).rollout.games == 400_000 // (50 * 10)
    assert dqn(resolve([runs, "episodes=1000"], many)).rollout.games == 512
    assert dqn(resolve([runs, "episodes=1000", "rollout.games=9"], many)).rollout.games == 9
    assert dqn(resolve([runs, "experiment=study_tressette"], many)).rollout.games == 512


def test_a_run_goes_on_with_what_it_began_with(tmp_path: Path) -> None:
    """Whatever the machine is now; without a checkpoint nothing has begun."""
    for name, began_on, other in (("a", GPU_NODE, LAPTOP), ("b", LAPTOP, GPU_NODE)):
        overrides = [f"runs={tmp_path}", f"name={name}", "learner.lr=5e-4"]
        began = resolve(overrides, began_on)
        folder = dqn(began).folder
        (folder / "checkpoints").mkdir(parents=True)
        (folder / "config.yaml").write_text(as_yaml(began.settings))
        assert dqn(resolve(overrides, other)).learner != dqn(began).learner
        (folder / "checkpoints" / "episode_000000000064.pt").write_text("")
        assert dqn(resolve(overrides, other)).learner == dqn(began).learner
        assert any("the run began with it" in note for note in resolve(overrides, LAPTOP).notes) == (name == "a")
        (folder / "config.yaml").write_text("]")
        assert dqn(resolve(overrides, other)).learner != dqn(began).learner


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
    monkeypatch.setattr("train.__main__.this_machine", lambda: Machine(gpu=True, cpus=3))
    capsys.readouterr()
    assert main(["--cfg"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("# experiment=gpu: ") and lines[1].startswith("# rollout=auto: threads")
