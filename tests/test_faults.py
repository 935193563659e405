"""The list of faults fits the tree, and the script that seeds them says what there is to say."""

import ast
import subprocess
from pathlib import Path

import pytest

from tests.faults import ROOT, Fault, load
from tests.faults.__main__ import main

FAULTS = load()
TREE = {
    "code_of/__init__.py": "def double(x):\n    return 2 * x\n\n\ndef half(x):\n    return x / 2\n",
    "tests/__init__.py": "",
    "tests/test_code.py": "from code_of import double, half\n\n\n"
    "def test_double():\n    assert double(3) == 6\n\n\ndef test_half():\n    assert half(0) == 0\n",
    "pytest.ini": "[pytest]\nmarkers = slow\n",
}


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
def test_a_fault_fits_the_tree(fault: Fault) -> None:
    text = (ROOT / fault.file).read_text()
    seeded = fault.seeded(text)
    assert seeded != text
    ast.parse(seeded)  # a syntax error is no fault that a test can catch
    for each in fault.tests:
        file, _, test = each.partition("::")
        assert (ROOT / file).exists(), f"{fault.name}: there is no {file}"
        assert not test or f"def {test}(" in (ROOT / file).read_text(), f"{fault.name}: there is no {each}"


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # it starts in half the time
    for name, text in TREE.items():
        path = tmp_path / "tree" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    subprocess.run(["git", "init", "-q"], cwd=tmp_path / "tree", check=True)
    return tmp_path / "tree"


def fault(find: str, put: str) -> Fault:
    return Fault("it", "code_of/__init__.py", find, put, "It is wrong.", ("tests/test_code.py",))


@pytest.mark.parametrize(
    ("find", "put", "code", "said"),
    [
        ("2 * x", "3 * x", 0, "tests/test_code.py::test_double"),
        ("x / 2", "x / 4", 1, "NOT CAUGHT"),
        ("def double", "def doubled", 2, "cannot import name 'double'"),
        ("return", "pass", 2, "the text to find is 2 times in code_of/__init__.py"),
    ],
)
def test_what_is_said_of_a_fault(
    tree: Path, find: str, put: str, code: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["it"], tree, {"it": fault(find, put)}) == code
    assert said in capsys.readouterr().out
    assert {name: (tree / name).read_text() for name in TREE} == TREE
