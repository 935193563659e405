"""The notebook runs in a fresh kernel, and its stored output is from such a run."""

import base64
import os
import signal
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

from tests.limits import seconds

ROOT = Path(__file__).parent.parent.parent
NOTEBOOK = ROOT / "examples" / "first_minute.ipynb"


def outputs(notebook: Any) -> list[Any]:
    return [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]


def text_of(notebook: Any) -> str:
    return "".join(output.get("text", "") for output in outputs(notebook))


def pictures_of(notebook: Any) -> list[bytes]:
    found = [output["data"]["image/png"] for output in outputs(notebook) if "image/png" in output.get("data", {})]
    return [base64.b64decode(picture) for picture in found]


def check(notebook: Any) -> None:
    assert not [output for output in outputs(notebook) if output.output_type == "error"]
    assert len(pictures_of(notebook)) == 2 and min(map(len, pictures_of(notebook))) > 5000
    text = text_of(notebook)
    assert "against random: " in text and "against greedy: " in text
    assert text.count("seat 0: ") == text.count("seat 3: ") == 10 and "the agent's team" in text


def test_what_is_stored_is_whole() -> None:
    notebook = nbformat.read(NOTEBOOK, 4)
    nbformat.validate(notebook)
    check(notebook)
    assert NOTEBOOK.stat().st_size < 100_000 and str(ROOT) not in NOTEBOOK.read_text()


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_it_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]))
    monkeypatch.setenv("BUSSO_MINUTES", "0.1")
    for folder in ("JUPYTER_RUNTIME_DIR", "IPYTHONDIR", "JUPYTER_CONFIG_DIR"):  # the user's own are not touched
        monkeypatch.setenv(folder, str(tmp_path / folder))
    notebook = nbformat.read(NOTEBOOK, 4)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs = []
    where = {"metadata": {"path": str(tmp_path)}}
    sigterm = signal.getsignal(signal.SIGTERM)
    NotebookClient(notebook, timeout=int(seconds(200)), kernel_name="python3", resources=where).execute()
    signal.signal(signal.SIGTERM, sigterm)  # asyncio leaves the default handler after handling the signal
    check(notebook)
    assert (tmp_path / "runs" / "tressette" / "first_minute" / "results.json").exists()
