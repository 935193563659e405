"""Games as readable text, so that a change of rule or of observation shows as a readable difference.

`tests/golden/*.txt` hold what `transcript` gives, and a test compares. After a change that is meant, write them anew
with `python -m tests.golden.transcripts` and read the difference before it is committed.
"""

from pathlib import Path

from tests.golden import spike_hands, tressette_hands

FOLDER = Path(__file__).parent
NAMES = (*tressette_hands.SCRIPTS, *spike_hands.SCRIPTS)


def transcript(name: str) -> str:
    """The text of the transcript of that name."""
    if name in spike_hands.SCRIPTS:
        return spike_hands.transcript(spike_hands.SCRIPTS[name])
    return tressette_hands.transcript(tressette_hands.SCRIPTS[name])


def main() -> None:
    """Write every transcript anew."""
    for name in NAMES:
        (FOLDER / f"{name}.txt").write_text(transcript(name))


if __name__ == "__main__":
    main()
