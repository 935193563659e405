"""The picture of a run's curves."""

from pathlib import Path

import pytest

from busso.evaluate.curves import main
from busso.train.run.metrics.curves import read

CSV = "env_steps,train/loss,eval/win_rate_vs_random\n10,0.5,\n20,0.25,\n15,,0.75\n"


def test_curves_are_read_and_drawn(tmp_path: Path) -> None:
    (tmp_path / "metrics.csv").write_text(CSV)
    found = {name: (list(steps), list(values)) for name, (steps, values) in read(tmp_path).items()}
    assert found == {
        "train/loss": ([10.0, 20.0], [0.5, 0.25]),
        "eval/win_rate_vs_random": ([15.0], [0.75]),
    }
    assert main([str(tmp_path), "--out", str(tmp_path / "x.png")]) == 0
    assert (tmp_path / "x.png").read_bytes().startswith(b"\x89PNG")


BAD = [
    (None, "No such file"),
    ("a,b\n1,2\n", "env_steps"),
    ("", "no rows"),
    ("env_steps,x\n1,abc\n", "metrics.csv"),
    ("env_steps,x\n1,2,3\n", "metrics.csv"),
]


@pytest.mark.parametrize(("text", "message"), BAD)
def test_bad_files_are_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str | None, message: str
) -> None:
    if text is not None:
        (tmp_path / "metrics.csv").write_text(text)
    assert main([str(tmp_path)]) == 2
    error = capsys.readouterr().err
    assert message in error and error.count("\n") == 1
