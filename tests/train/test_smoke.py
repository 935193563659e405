"""A small local run from the command line to the checkpoint."""

from pathlib import Path

from train.__main__ import main


def test_local_run(tmp_path: Path) -> None:
    arguments = [
        "rollout=local",
        "rollout.games=64",
        "episodes=256",
        "learner.learning_starts=1000",
        "evaluation.deals=16",
    ]
    assert main([*arguments, "evaluation.final_deals=16", f"runs={tmp_path}", "name=smoke"]) == 0
    assert (tmp_path / "tressette" / "smoke" / "checkpoints" / "best.pt").exists()
