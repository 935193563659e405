"""Standard streams with fewer characters than UTF-8, closed streams, and minimal ones as in notebooks."""

import io
import sys
from pathlib import Path
from typing import Any

import pytest

import busso
from busso.evaluate.replay import main as replay
from busso.evaluate.review.__main__ import main as review
from busso.evaluate.solve.__main__ import main as solve
from busso.evaluate.tournament.__main__ import main as tournament
from busso.train.__main__ import main as train
from tests.train.runs import SMALL

TINY = [*SMALL, "episodes=64"]

RECORDED = ["players=[greedy,random]", "deals=2", "records=2", "folder=games", "processes=1"]


class Written:
    """Minimal stream for `print`."""

    def __init__(self) -> None:
        self.text = ""

    def write(self, text: str) -> int:
        self.text += text
        return len(text)

    def flush(self) -> None:
        pass


class NoFlush:
    def write(self, text: str) -> int:
        return len(text)


def closed() -> io.StringIO:
    stream = io.StringIO()
    stream.close()
    return stream


class Full(Written):
    def write(self, text: str) -> int:
        raise OSError(28, "No space left on device")


class Broken(Written):
    def write(self, text: str) -> int:
        raise BrokenPipeError(32, "Broken pipe")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def put(monkeypatch: pytest.MonkeyPatch, kind: Any) -> tuple[Any, Any]:
    for name in ("stdout", "stderr"):
        monkeypatch.setattr(sys, name, kind())
    return sys.stdout, sys.stderr


def test_commands_write_text(monkeypatch: pytest.MonkeyPatch) -> None:
    out, err = put(monkeypatch, Written)
    assert tournament(RECORDED) == 0 and "greedy" in out.text and "games" in err.text
    assert replay(["games/games.jsonl"]) == 0 and out.text.count("winner_team") == 4


@pytest.mark.parametrize("kind", [Full, Broken])
def test_a_stream_that_takes_no_more_is_an_exit_code(kind: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    assert tournament(RECORDED) == 0
    put(monkeypatch, kind)
    assert replay(["games/games.jsonl"]) == 2


@pytest.mark.parametrize("encoding", ["ascii", "iso-8859-1"])
def test_commands_print_what_the_encoding_has(encoding: str, monkeypatch: pytest.MonkeyPatch) -> None:
    out = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    monkeypatch.setattr(sys, "stdout", out)
    assert tournament(RECORDED) == 0
    if encoding == "ascii":  # the smallest character set
        assert review(["games/games.jsonl", "hands=1", "by=monte_carlo:samples:2"]) == 0
        assert solve(["game=blackjack"]) == 0
    out.flush()
    said = out.buffer.getvalue().decode(encoding)  # type: ignore[attr-defined]
    assert "greedy" in said and "random" in said
    assert ("?" if encoding == "ascii" else "±") in said


@pytest.mark.parametrize("kind", [Written, lambda: None, closed, NoFlush], ids=["text", "none", "closed", "no flush"])
def test_a_run_is_complete_whatever_its_streams_are(kind: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    out, _ = put(monkeypatch, kind)
    assert train(TINY) == 0
    assert "random" in getattr(out, "text", "random")


def test_the_library_trains_without_a_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    put(monkeypatch, closed)
    assert busso.train_agent(*TINY).results["random"]["deals"] == 8
