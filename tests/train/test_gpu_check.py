"""`busso gpu-check`: parts that pass, fail, crash and hang; stopped and resumed; and the real parts, small."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from command import child
from command.settings.checks import SettingsError
from tests.bench import device
from tests.errors import error_about
from tests.train.runs import SMALL
from train.gpu_check import parts, report, work
from train.gpu_check.__main__ import main
from train.gpu_check.parts import Part

HERE = {"version": "1", "commit": "abc", "changed": False, "torch": "2", "cpu": "a CPU", "cpus": 2, "memory": 2**30}
FIGURE = {"figure": "gpu_updates", "value": 4321.0, "unit": "updates/s", "batch": 512}


def _machine(monkeypatch: pytest.MonkeyPatch, *gpus: str) -> None:
    said = json.dumps(HERE | {"gpus": gpus})
    monkeypatch.setattr(work, "machine", lambda: [sys.executable, "-c", f"print({said!r})"])


def part(name: str, code: str, limit: float = 30, shows: str = "fine", **more: Any) -> Part:
    return Part(name, [sys.executable, "-c", f"import os, signal, time; {code}"], limit, shows, **more)


def results(folder: Path) -> dict[str, Any]:
    return dict(json.loads((folder / work.FILE).read_text())["parts"])


def test_each_part_ends_as_it_does_and_the_others_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _machine(monkeypatch, "NVIDIA L40")
    monkeypatch.setattr(work, "_GRACE", 0.5)
    mended = tmp_path / "mended"
    some = [
        part("sound", "print('=== fine | with a bar ===')"),
        part("failing", f"print('why'); raise SystemExit(0 if os.path.exists({str(mended)!r}) else 3)", shows="why"),
        part("crashing", "os.abort()"),
        part("hanging", "signal.signal(15, signal.SIG_IGN); print('so far', flush=True); time.sleep(60)", limit=1),
        part("skipping", "print('4 skipped')"),
        part("figures", f"print({json.dumps(FIGURE)!r})", shows="^{"),
        Part("absent", ["no-such-program"], 1, "fine"),
    ]
    assert work.check(tmp_path, some) == 1
    found = results(tmp_path)
    assert {name: each["result"] for name, each in found.items()} == {
        "sound": "passed", "failing": "failed", "crashing": "failed", "hanging": "failed", "skipping": "left out",
        "figures": "passed", "absent": "left out",
    }  # fmt: skip
    assert found["failing"]["says"] == ["why"] and found["hanging"]["says"] == ["time limit reached", "so far"]
    assert 1 <= found["hanging"]["seconds"] < 10 and found["figures"]["figures"] == [FIGURE]
    page = (tmp_path / work.PAGE).read_text()
    assert "# Check of NVIDIA L40\n" in page and "| sound | passed | 0 | fine / with a bar |" in page
    assert "no-such-program is not there" in page
    # Then once more what did not pass, and that alone.
    mended.touch()
    assert work.check(tmp_path, [each for each in some if each.name != "hanging"]) == 1
    again = results(tmp_path)
    assert again["failing"]["result"] == "passed" and again["sound"] == found["sound"]
    assert work.check(tmp_path, some[:2]) == 0


def test_a_stopped_check_resumes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C in the second part, whose process ends with it."""
    _machine(monkeypatch)
    count = "open('count', 'a').write('x'); print('fine')"
    monkeypatch.chdir(tmp_path)
    stopped = part("second", "os.kill(os.getppid(), signal.SIGINT); time.sleep(60)")
    with pytest.raises(KeyboardInterrupt):
        work.check(tmp_path, [part("first", count), stopped, part("third", count)])
    assert list(results(tmp_path)) == ["first"] and "| second | not done yet |" in (tmp_path / work.PAGE).read_text()
    assert work.check(tmp_path, [part("first", count), part("second", count), part("third", count)]) == 0
    assert (tmp_path / "count").read_text() == "xxx" and list(results(tmp_path)) == ["first", "second", "third"]
    assert "none of this is a figure of a GPU" in (tmp_path / work.PAGE).read_text()
    _machine(monkeypatch, "another GPU")
    for _ in range(2):
        with error_about(SettingsError, "folder", hint="folder="):
            work.check(tmp_path, [])
        (tmp_path / work.FILE).write_text("[]")


def test_a_clone_without_pytest_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(work, "find_spec", lambda name: None)
    with error_about(SettingsError, "pytest", hint="pip install"):
        work.check(tmp_path / "none", parts.all_parts(tmp_path, 1.0))
    assert not (tmp_path / "none").exists()


def test_without_a_clone_the_parts_that_need_one_are_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "ROOT", tmp_path)
    needing = [each.name for each in parts.all_parts(tmp_path, 1.0) if "clone" in each.missing()]
    assert needing == ["tests", *parts.FIGURES, "sanitizer"]


@pytest.mark.parametrize("row", report.ROWS.values())
def test_every_row_to_replace_is_in_the_page(row: str) -> None:
    assert any("H100" in column for column in report.estimates_of(row)), row


def test_figures_of_a_gpu_have_names_of_the_benchmark() -> None:
    assert set(parts.FIGURES) == {function.__name__ for function in device.FIGURES}


_FEW_UPDATES = """
from tests.bench import device
from tests.pretended_gpu import pretend
device.BATCHES, device.FILLED, device.SECONDS = {512: 5000}, 4000, 0.1
with pretend():
    device.gpu_updates()
"""


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_the_real_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """On the pretended GPU, each as short as can be."""

    def command(module: str, arguments: Sequence[str]) -> list[str]:
        if module == "tests.bench":
            return [sys.executable, "-c", _FEW_UPDATES]
        if module != "pytest":  # tests marked `gpu` have one by themselves
            module, arguments = "tests.pretended_gpu", [module, *arguments]
        return child.child_command(module, arguments)

    monkeypatch.setattr(parts, "child_command", command)
    monkeypatch.setattr(parts, "FIGURES", {"gpu_updates": 100})
    monkeypatch.setattr(parts, "TESTS", ("tests/train/dqn/test_cuda_graphs.py", "-m", "gpu", "-k", "fails_on_cuda"))
    monkeypatch.setattr(parts, "SETTINGS", (*SMALL, "device=cuda"))
    folder = tmp_path / "check"
    assert main([f"folder={folder}", "minutes=0.05"]) == 0, capsys.readouterr()
    found = {name: each["result"] for name, each in results(folder).items()}
    assert found["tests"] == found["run"] == found["doctor"] == found["gpu_updates"] == "passed"
    assert found["sanitizer"] in ("passed", "left out")
    page = (folder / work.PAGE).read_text()
    assert "limited by" in page and "| eval/win_rate_vs_random | " in page
    assert "self-check" in page and "updates of batch 512 | " in page
    assert str(folder / work.PAGE) in capsys.readouterr().out
