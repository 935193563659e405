"""The transcripts are what the engine does today. `python -m tests.golden.transcripts` writes them anew."""

import pytest

from tests.golden.spike_hands import SCRIPTS
from tests.golden.transcripts import FOLDER, NAMES, transcript


@pytest.mark.parametrize("name", NAMES)
def test_transcript(name: str) -> None:
    assert transcript(name) == (FOLDER / f"{name}.txt").read_text()


@pytest.mark.parametrize("name", SCRIPTS)
def test_transcripts_show_what_they_are_for(name: str) -> None:
    text = (FOLDER / f"{name}.txt").read_text()
    assert [words for words in SCRIPTS[name].shows if words not in text] == []


def test_no_transcript_is_left_over() -> None:
    assert {path.stem for path in FOLDER.glob("*.txt")} == set(NAMES)
