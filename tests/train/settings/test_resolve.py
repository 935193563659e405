"""What a command line means on this machine: which rollouts, by one recipe everywhere."""

from dataclasses import replace
from pathlib import Path

import pytest

from command.settings.checks import SettingsError
from tests.errors import error_about
from train.__main__ import main
from train.settings.dqn import RolloutSettings, TrainSettings
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
    ("machine", "overrides", "kind", "games", "actor_threads"),
    [
        (LAPTOP, [], "ray", 512, None),
        (GPU_NODE, [], "ray", 512, None),
        (GPU_NODE, ["rollout=auto"], "ray", 512, None),
        (GPU_NODE, ["rollout.nodes=2"], "ray", 512, None),
        (GPU_NODE, ["rollout.gpus_per_worker=0.1", "rollout.games=64"], "ray", 64, None),
        (GPU_NODE, ["rollout=threads"], "threads", 1562, 8),
        (GPU_NODE, ["rollout=threads", "learner.threads=15"], "threads", 3906, 2),
        (GPU_NODE, ["rollout=threads", "device=cpu"], "threads", 512, None),
        (GPU_NODE, ["rollout=threads", "device=cpu", "learner.threads=2"], "threads", 512, 14),
        (LAPTOP, ["rollout=threads", "device=cuda:1"], "threads", 3125, 3),
        (LAPTOP, ["rollout=threads"], "threads", 512, None),
        (LAPTOP, ["rollout=threads", "rollout.actor_threads=2"], "threads", 512, 2),
        (LAPTOP, ["rollout=threads", "learner.threads=4"], "threads", 512, 1),
        (GPU_NODE, ["rollout=local"], "local", 512, None),
        (GPU_NODE, ["rollout=device"], "device", 1_000_000 // 128, None),
        (GPU_NODE, ["rollout=device", "rollout.games=100"], "device", 100, None),
    ],
)
def test_rollouts_of_a_machine(
    machine: Machine, overrides: list[str], kind: str, games: int, actor_threads: int | None
) -> None:
    rollout = dqn(resolve(overrides, machine)).rollout
    assert (rollout.kind, rollout.games, rollout.actor_threads) == (kind, games, actor_threads)


def test_settings_of_ray_and_of_threads_do_not_mix() -> None:
    with error_about(SettingsError, "rollout.workers"):
        resolve(["rollout=threads", "rollout.workers=2"], LAPTOP)
    assert dqn(resolve(["rollout=threads", "rollout.workers=2", "rollout.nodes=2"], LAPTOP)).rollout.workers == 2
    for given in ([], ["rollout=local"], ["rollout=auto"]):
        with error_about(SettingsError, "rollout.actor_threads", hint="--cfg"):
            resolve([*given, "rollout.actor_threads=2"], LAPTOP)
    with error_about(SettingsError, "rollout.actor_threads"):
        resolve(["rollout=threads", "rollout.actor_threads=0"], LAPTOP)


def test_automatic_samples_are_the_number_of_the_recipe_which_may_fall() -> None:
    for game, samples in (("tressette", 0.5), ("spike", 1.0)):
        learner = dqn(resolve([f"game={game}", "learner.samples_per_insert=auto"], LAPTOP)).learner
        assert (learner.samples_per_insert, learner.samples_floor) == (samples, 0.25)
    assert dqn(resolve([], LAPTOP)).learner.samples_floor == 1
    with error_about(SettingsError, "learner"):
        resolve(["algo=td", "learner.samples_per_insert=auto"], LAPTOP)


def test_one_recipe_on_every_machine() -> None:
    assert resolve([], GPU_NODE) == resolve([], LAPTOP)
    there, here = (dqn(resolve(["rollout=threads"], machine)) for machine in (GPU_NODE, LAPTOP))
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
    many = Machine(gpu=True, cpus=128)

    def rollout(*overrides: str) -> RolloutSettings:
        return dqn(resolve(["rollout=threads", f"runs={tmp_path}", *overrides], many)).rollout

    assert (rollout().actor_threads, rollout().games) == (8, 1_000_000 // (64 * 10))
    assert rollout("episodes=400000").games == 400_000 // (50 * 10)
    assert rollout("episodes=1000").games == 512
    assert rollout("episodes=1000", "rollout.games=9").games == 9


def test_longer_runs_have_settings_of_their_own() -> None:
    """By minutes, also those of a Slurm job; not what the command line names, nor an experiment without such."""

    def found(*overrides: str) -> tuple[list[int], float]:
        settings = dqn(resolve(overrides, LAPTOP))
        return settings.network.hidden, settings.learner.muon

    short, long = ([128] * 3, 4.0), ([192] * 4, 0.0)
    assert found() == found("episodes=100000000") == found("minutes=59.9") == short
    assert found("minutes=60") == found("minutes=240") == long
    assert found("minutes=240", "network.hidden=[8]") == ([8], 0.0)
    assert found("minutes=240", "learner.muon=2") == ([192] * 4, 2.0)
    assert found("minutes=240", "experiment=study_tressette") == ([256, 256], 0.0)
    steps = "longer=[{minutes: 5, hidden: [5]}, {minutes: 9, hidden: [9], muon: 1}, {minutes: 7, hidden: [7]}]"
    assert found(steps, "minutes=8") == ([7], 0.0) and found(steps, "minutes=10") == ([9], 1.0)
    (note,) = resolve(["minutes=240", "learner.muon=2"], LAPTOP).notes
    assert note == "longer: network.hidden=[192, 192, 192, 192], since the run has 240 minutes"
    assert not resolve([], LAPTOP).notes
    with error_about(SettingsError, "longer"):
        resolve(["longer=[{minutes: 5, hidden: []}]"], LAPTOP)


@pytest.mark.parametrize("began", [([192] * 4, 0.0), ([128] * 3, 4.0)])
def test_a_run_that_has_begun_keeps_its_settings(tmp_path: Path, began: tuple[list[int], float]) -> None:
    """With another budget, too; but not what only a command line can have named, which it must name again."""
    run = tmp_path / "runs" / "tressette" / "default"
    (run / "checkpoints").mkdir(parents=True)
    (run / "checkpoints" / "episode_1.pt").touch()
    for hidden, expected in ((began[0], began[0]), ([16], [128] * 3)):
        (run / "config.yaml").write_text(f"network: {{hidden: {hidden}}}\nlearner: {{muon: {began[1]}}}")
        for minutes in ("minutes=5", "minutes=240"):
            settings = dqn(resolve([minutes], LAPTOP))
            assert (settings.network.hidden, settings.learner.muon) == (expected, began[1])
