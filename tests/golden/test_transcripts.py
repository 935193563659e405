"""Transcripts match the engine. `python -m tests.golden.spike_hands` rewrites them."""

import pytest

from tests.golden.spike_hands import FOLDER, SCRIPTS, transcript


@pytest.mark.parametrize("name", SCRIPTS)
def test_transcript(name: str) -> None:
    text = (FOLDER / f"{name}.txt").read_text()
    assert transcript(SCRIPTS[name]) == text
    assert [words for words in SCRIPTS[name].shows if words not in text] == []


def test_no_transcript_is_left_over() -> None:
    assert {path.stem for path in FOLDER.glob("*.txt")} == set(SCRIPTS)
