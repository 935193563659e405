"""The layout and the words of the source: sizes of folders and files, and one name for one thing.

Imports between folders are for `lint-imports`.
"""

from __future__ import annotations

import ast
import re
import subprocess
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from tests.words import GONE, PER_GAME, RELAPSES

ROOT = Path(__file__).parents[1]
MODULES_OF_A_FOLDER, LINES_OF_A_FILE = 12, 300
READ = (".j2", ".md", ".py", ".sh", ".tcss", ".yaml")
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")


@cache
def modules() -> dict[Path, str]:
    """The source of each module outside tests, docs and examples, by its path from the root."""
    listed = subprocess.run(["git", "ls-files", "*.py"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    paths = (path for path in map(Path, listed.split()) if path.parts[0] not in ("tests", "docs", "examples"))
    return {path: (ROOT / path).read_text(encoding="utf-8") for path in paths if (ROOT / path).exists()}


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(modules()[path])


def names(path: Path) -> Iterator[str]:
    """The module's own name, and those of its classes, functions, parameters, fields and attributes."""
    yield path.stem if path.stem != "__init__" else path.parent.name
    for node in ast.walk(tree(path)):
        match node:
            case ast.ClassDef(name=name) | ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield name
            case ast.arg(arg=name) | ast.AnnAssign(target=ast.Name(id=name)):
                yield name
            case ast.Attribute(value=ast.Name(id="self"), attr=name, ctx=ast.Store()):
                yield name


def test_a_folder_has_few_modules() -> None:
    counts = Counter(path.parent.as_posix() for path in modules() if path.name != "__init__.py")
    assert {folder: count for folder, count in counts.items() if count > MODULES_OF_A_FOLDER} == {}


def test_a_file_has_few_lines() -> None:
    counts = {path.as_posix(): len(text.splitlines()) for path, text in modules().items()}
    assert {path: count for path, count in counts.items() if count > LINES_OF_A_FILE} == {}


def test_words_that_went_stay_away() -> None:
    found = []
    for path in modules():
        words = {word for word, (_, elsewhere) in GONE.items() if not any(map(path.is_relative_to, elsewhere))}
        for name in names(path):
            came_back = words & {word.lower() for word in _WORD.findall(name)}
            found += [f"{path}: {name}, say {GONE[word][0]}" for word in came_back]
    assert found == []


def test_plain_english() -> None:
    """In pages, settings, scripts, and the comments and strings of the code; the changelog keeps what it said."""
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    phrases = "|".join(phrase.replace(" ", r"[\s#*]+") for phrase in RELAPSES)
    relapse = re.compile(rf"\b(?:{phrases})\b|\"{{3}}Of ", re.IGNORECASE)
    found = []
    for path in map(Path, listed):
        if path.suffix in READ and path.parts[0] != "tests" and path.name != "CHANGELOG.md" and (ROOT / path).exists():
            text = (ROOT / path).read_text(encoding="utf-8")
            found += [f"{path}:{text.count(chr(10), 0, hit.start()) + 1}: {hit[0]}" for hit in relapse.finditer(text)]
    assert found == []


def test_a_public_class_has_a_name_of_its_own() -> None:
    counts = Counter(
        node.name
        for path in modules()
        for node in tree(path).body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )
    assert {name for name, count in counts.items() if count > 1} == PER_GAME
