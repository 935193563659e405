"""Layout of the source: sizes of folders and files, unique class names, docstrings."""

import ast
import re
import subprocess
from collections import Counter
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
MODULES_OF_A_FOLDER, LINES_OF_A_FILE = 20, 500
NOT_FIRST = {"What", "Whether", "Who", "Which", "How", "Where", "One", "Have", "Those", "That"}
OF_EACH_GAME = {"GameBoard", "GameScreen", "Options"}


@cache
def modules() -> dict[Path, str]:
    """Return the source of each module outside tests, docs and examples, by relative path."""
    listed = subprocess.run(["git", "ls-files", "*.py"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    paths = (path for path in map(Path, listed.split()) if path.parts[0] not in ("tests", "docs", "examples"))
    return {path: (ROOT / path).read_text(encoding="utf-8") for path in paths if (ROOT / path).exists()}


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse((ROOT / path).read_text(encoding="utf-8"))


def test_a_folder_has_few_modules() -> None:
    counts = Counter(path.parent.as_posix() for path in modules() if path.name != "__init__.py")
    assert {folder: count for folder, count in counts.items() if count > MODULES_OF_A_FOLDER} == {}


def test_a_file_has_few_lines() -> None:
    counts = {path.as_posix(): len(text.splitlines()) for path, text in modules().items()}
    assert {path: count for path, count in counts.items() if count > LINES_OF_A_FILE} == {}


def test_a_public_class_has_a_name_of_its_own() -> None:
    counts = Counter(
        node.name
        for path in modules()
        for node in tree(path).body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )
    assert {name for name, count in counts.items() if count > 1} == OF_EACH_GAME


def test_docstrings_begin_with_a_verb_or_are_a_noun_phrase() -> None:
    listed = subprocess.run(["git", "ls-files", "*.py"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    found = []
    for path in (path for path in map(Path, listed.split()) if (ROOT / path).exists()):
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                words = re.match(r"\w+", ast.get_docstring(node) or "")
                if words and words[0] in NOT_FIRST:
                    found.append(f"{path}:{node.body[0].lineno}: {words[0]}")
    assert found == []
