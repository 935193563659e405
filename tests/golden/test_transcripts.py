"""The transcripts are what the engine does today. `python -m tests.golden.transcripts` writes them anew."""

import pytest

from tests.golden.transcripts import FOLDER, SCRIPTS, transcript


@pytest.mark.parametrize("name", SCRIPTS)
def test_transcript(name: str) -> None:
    assert transcript(SCRIPTS[name]) == (FOLDER / f"{name}.txt").read_text()


def test_no_transcript_is_left_over() -> None:
    assert {path.stem for path in FOLDER.glob("*.txt")} == set(SCRIPTS)
