"""`python -m train doctor`: what it finds, and whether it says that a run would start."""

from functools import partial
from pathlib import Path

import pytest
import torch

from tests.train.runs import TrainedRuns, settings, small
from train.__main__ import main
from train.doctor import measure, together
from train.doctor import report as doctor
from train.dqn.self_check import Check
from train.run.checkpoint import checkpoint
from train.run.folder import RunFolder
from train.run.metrics import resources
from train.settings.dqn import TrainSettings


@pytest.fixture
def _short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each stage is measured for a moment."""
    monkeypatch.setattr(measure, "measure", partial(measure.measure, seconds=0.1))
    monkeypatch.setattr(together, "compare_kinds", partial(together.compare_kinds, seconds=0.5))


@pytest.mark.usefixtures("_short")
def test_a_run_that_would_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)  # a long path would break a line of the table
    assert main(["doctor", *small(Path("runs"))]) == 0
    text = capsys.readouterr().out
    assert all(stage in text for stage in ("rollout", "replay", "learner")) and text.count("limits") == 1
    assert text.count("limited by the ") == 1
    words = " ".join(text.replace("│", " ").split())
    assert torch.__version__ in words and "starts from the beginning" in words
    assert not any(tmp_path.iterdir())  # looking leaves nothing behind


def test_runs_that_would_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    found = {finding.what: finding for finding in doctor.examine(settings(tmp_path / "file"))}
    assert found["run folder"].verdict == "error" and "runs=" in found["run folder"].says
    found = {finding.what: finding for finding in doctor.examine(settings(tmp_path, "device=cuda:77"))}
    assert found["device"].verdict == "error" and "cuda:77" in found["device"].says
    monkeypatch.setenv("RAY_ADDRESS", "127.0.0.1:1")
    findings = doctor.examine(settings(tmp_path, "rollout=ray"))
    assert not doctor.would_start(findings)
    assert [finding.what for finding in findings if finding.verdict == "error"] == ["Ray"]


def test_threads_of_several_nodes_want_a_cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ray is looked at: nobody listens at the address."""
    monkeypatch.setenv("RAY_ADDRESS", "127.0.0.1:1")
    chosen = settings(tmp_path, "rollout=threads", "rollout.nodes=2")
    findings = doctor.examine(chosen)
    assert [finding.what for finding in findings if finding.verdict == "error"] == ["Ray"]
    found = {finding.what: finding for finding in findings}
    assert "other nodes are not counted" in found["CPUs"].says
    assert "Ray" not in {each.what for each in doctor.examine(settings(tmp_path, "rollout=threads"))}


def test_workers_of_a_cluster_are_not_guessed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    known = settings(tmp_path, "rollout=ray", "rollout.workers=3")
    guessed = settings(tmp_path, "rollout=ray", "rollout.workers=null")
    assert "only this node" not in doctor._cpus(guessed).says
    monkeypatch.setenv("RAY_ADDRESS", "127.0.0.1:1")
    assert "only this node is counted" in doctor._cpus(guessed).says
    assert "only this node" not in doctor._cpus(known).says


def test_runs_that_could_not_be_resumed(tmp_path: Path, trained_run: TrainedRuns) -> None:
    def folder(*overrides: str) -> doctor.Finding:
        found = {finding.what: finding for finding in doctor.examine(settings(tmp_path, *overrides))}
        return found["run folder"]

    trained_run("episodes=64", runs=tmp_path)
    assert folder().verdict == "ok" and "resumes from episode_000000000064.pt" in folder().says
    assert folder("learner.lr=0.5").verdict == "error" and "learner.lr" in folder("learner.lr=0.5").says
    with RunFolder(settings(tmp_path)):
        assert folder().verdict == "error" and "another process is using this run" in folder().says
    (newest,) = checkpoint.listed(settings(tmp_path).folder / "checkpoints")
    newest.write_bytes(b"damaged")
    assert folder().verdict == "error" and newest.exists()  # looking changes nothing


PASSED = Check("values", "", 0.1)
FAULTY = Check("updates", "16 updates in CUDA graphs give another network", 0.1, "learner.cuda_graphs=false")


@pytest.mark.parametrize(
    ("checks", "says", "verdict"),
    [
        ([PASSED], ["on 4,096 decisions the GPU computes what the CPU does: values"], "ok"),
        ([PASSED, FAULTY], ["does: values", f"{FAULTY.fault}; a run would use learner.cuda_graphs=false"], "error"),
        (RuntimeError("CUDA error: other values\nsecond line"), ["CUDA error: other values"], "error"),
    ],
)
def test_a_gpu_that_computes_something_else_is_an_error(
    checks: list[Check] | Exception, says: list[str], verdict: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def check(settings: TrainSettings, device: torch.device) -> tuple[TrainSettings, list[Check]]:
        if isinstance(checks, Exception):
            raise checks
        return settings, checks

    monkeypatch.setattr(doctor, "self_check", check)
    found = list(doctor._self_check(settings(tmp_path)))
    assert len(found) == len(says) and all(text in each.says for each, text in zip(found, says, strict=True))
    assert found[-1].verdict == verdict and "\n" not in found[-1].says
    monkeypatch.setattr("train.doctor.measure.measure", lambda *rest: None)
    assert main(["doctor", *small(tmp_path)]) == (0 if verdict == "ok" else 2)


def test_exit_code_and_what_it_does_not_look_at(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", *small(tmp_path, "device=cuda:77")]) == 2
    assert "device" in capsys.readouterr().out
    assert main(["doctor", "experiment=blackjack_q"]) == 2
    assert "error: doctor: looks at runs of algo=dqn" in capsys.readouterr().err


def test_what_a_job_may_use(monkeypatch: pytest.MonkeyPatch) -> None:
    """The least of what the machine has and what Slurm gave."""
    for name in ("SLURM_CPUS_PER_TASK", "SLURM_CPUS_ON_NODE", "SLURM_MEM_PER_NODE", "SLURM_MEM_PER_CPU"):
        monkeypatch.delenv(name, raising=False)
    everything, all_memory = resources.cpus(), resources.memory()
    monkeypatch.setenv("SLURM_CPUS_PER_TASK", "1")
    monkeypatch.setenv("SLURM_MEM_PER_CPU", "700")
    assert resources.cpus() == 1 and resources.memory() == 700 << 20
    assert 80 << 20 <= resources.object_store() <= int(0.15 * (700 << 20))
    monkeypatch.setenv("SLURM_MEM_PER_NODE", "1000")
    assert resources.memory() == 1000 << 20
    monkeypatch.setenv("SLURM_MEM_PER_NODE", "99999999")
    monkeypatch.setenv("SLURM_CPUS_PER_TASK", "9999")
    assert resources.memory() == all_memory and resources.cpus() == everything


@pytest.mark.gpu
@pytest.mark.ray
@pytest.mark.slow
@pytest.mark.usefixtures("_short")
def test_a_node_with_a_gpu(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """All of it, with Ray workers: the self-check, the stages, and what the other kinds bring, if anything."""
    given = small(tmp_path, "device=cuda", "rollout=threads", "rollout.actor_threads=1")
    assert main(["doctor", *given]) == 0
    says = " ".join(capsys.readouterr().out.replace("│", " ").split())
    assert "the GPU computes what the CPU does: values, kernels, updates, rollout=threads" in says
    assert "rollout=threads: " in says and "decisions/s, played and learned from" in says
    assert not any(tmp_path.iterdir())
