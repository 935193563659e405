"""Pages of the documentation and their commands, for tests that read them."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
DOCS = sorted((ROOT / "docs").rglob("*.md"))
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *DOCS]
TEXT = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
BLOCKS: list[str] = re.findall(r"^```[^\n]*\n(.*?)^```", TEXT, re.M | re.S)
_PLACEHOLDER = re.compile(r"\b(FILE|FOLDER|GAME|NAME|PATH|RUN)\b")
_SHELL = ("|", ">", "<", "&&", "&", ";")
_JOBS = {"train_dqn": "train", "sweep": "train -m", "evaluate": "tournament"}


def commands() -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the commands in code blocks, without those with placeholders: name in `busso`, and arguments."""
    for block in BLOCKS:
        for line in block.replace("\\\n", " ").splitlines():
            if re.match(r"((\.venv/bin/)?busso|sbatch|make train|make tournament) ?", line):
                if _PLACEHOLDER.search(line) or not (words := _words(line)):
                    continue
                yield words[0], tuple(words[1:])


def _words(line: str) -> list[str]:
    """Return the words after `busso`; empty if the line is not a command of busso."""
    words = shlex.split(line, comments=True)
    words = words[: min((words.index(sign) for sign in _SHELL if sign in words), default=len(words))]
    match words:
        case ["busso" | ".venv/bin/busso", *rest]:
            return rest
        case ["make", target, *rest]:
            return [target, *shlex.split(rest[0].removeprefix("ARGS=") if rest else "")]
        case ["sbatch", *rest]:
            script = next(index for index, word in enumerate(rest) if word.startswith("slurm/"))
            assert (ROOT / rest[script]).exists(), line
            name = Path(rest[script]).stem
            return [*_JOBS.get(name, name).split(), *rest[script + 1 :]]
    return []
