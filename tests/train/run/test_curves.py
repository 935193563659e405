from pathlib import Path

import pytest

from busso.cards.base.errors import InputError
from busso.train.run.metrics.curves import read
from tests.errors import error_about

CSV = "env_steps,train/loss,eval/win_rate_vs_random\n10,0.5,\n20,0.25,\n15,,0.75\n5,,0.5\n"


def test_curves_are_read_in_the_order_of_the_file(tmp_path: Path) -> None:
    (tmp_path / "metrics.csv").write_text(CSV)
    found = {name: (list(steps), list(values)) for name, (steps, values) in read(tmp_path).items()}
    assert found == {
        "train/loss": ([10.0, 20.0], [0.5, 0.25]),
        "eval/win_rate_vs_random": ([15.0, 5.0], [0.75, 0.5]),
    }


@pytest.mark.parametrize("text", ["a,b\n1,2\n", "env_steps,x\n1,abc\n", "env_steps,x\n1,2,3\n"])
def test_bad_files_are_named(tmp_path: Path, text: str) -> None:
    (tmp_path / "metrics.csv").write_text(text)
    with error_about(InputError, tmp_path / "metrics.csv", "not the metrics of a run"):
        read(tmp_path)
