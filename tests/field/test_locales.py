"""Terminals and pipes that know fewer letters than UTF-8, and standard output that is closed or is hardly a stream."""

import io
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import busso
from busso.evaluate.review.__main__ import main as review
from busso.evaluate.solve.__main__ import main as solve
from busso.evaluate.tournament.__main__ import main as tournament
from busso.train.__main__ import main as train
from tests.train.runs import SMALL

TINY = [*SMALL, "episodes=64"]
RECORDED = ["players=[greedy,random]", "deals=2", "records=1", "folder=games", "processes=1"]


class NoFlush:
    def write(self, text: str) -> int:
        return len(text)


def closed() -> io.StringIO:
    stream = io.StringIO()
    stream.close()
    return stream


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("encoding", ["ascii", "iso-8859-1", "cp1252"])
def test_commands_print_what_the_encoding_has(encoding: str, monkeypatch: pytest.MonkeyPatch) -> None:
    out = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    monkeypatch.setattr(sys, "stdout", out)
    assert tournament(RECORDED) == 0
    if encoding == "ascii":  # which has the fewest letters
        assert review(["games/games.jsonl", "hands=1", "by=monte_carlo:samples:2"]) == 0
        assert solve(["game=blackjack"]) == 0
    out.flush()
    said = out.buffer.getvalue().decode(encoding)  # type: ignore[attr-defined]
    assert "greedy" in said and "random" in said
    assert ("?" if encoding == "ascii" else "±") in said


@pytest.mark.parametrize("stream", [closed, NoFlush], ids=["closed", "no flush"])
def test_a_run_is_complete_whatever_standard_output_is(
    stream: Callable[[], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("stdout", "stderr"):
        monkeypatch.setattr(sys, name, stream())
    assert busso.train_agent(*TINY, "name=library").results["random"]["deals"] == 8
    assert train([*TINY, "name=command"]) == 0
