"""User settings files, in a folder of `--config-dir` or `hydra.searchpath`: faults that Hydra does not name."""

from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path

import yaml

from busso.command.settings.checks import SettingsError
from busso.command.settings.overrides import given, key_of
from busso.command.settings.quoting import read_by_hydra

GLOBAL = "# @package _global_"
_MARK = "\ufeff"  # byte order mark, written by some editors


def yaml_problem(error: Exception) -> str:
    """Return the line number and problem from an error of PyYAML."""
    mark, problem = getattr(error, "problem_mark", None), getattr(error, "problem", None)
    line = "" if mark is None else f"line {mark.line + 1}: "
    return line + (problem or str(error) or type(error).__name__).splitlines()[0]


def syntax_error(error: yaml.YAMLError) -> SettingsError:
    """Return the error for a settings file with invalid YAML."""
    hints = {
        "'\\t'": "indent with spaces",
        "duplicate key": "leave one out",
        "unacceptable character": "delete it",
        "": "check quotes, brackets and indentation",
    }
    problem = yaml_problem(error)
    hint = next(hint for part, hint in hints.items() if part in problem)
    return SettingsError(getattr(getattr(error, "problem_mark", None) or error, "name", ""), problem, hint)


def not_utf8(overrides: Sequence[str]) -> SettingsError | None:
    """Return the error for the first chosen file that is not UTF-8."""
    for _, file in _chosen(overrides):
        try:
            (content := file.read_bytes()).decode()
        except UnicodeDecodeError as error:
            line = content.count(b"\n", 0, error.start) + 1
            return SettingsError(file, f"line {line}: not UTF-8", "save it as UTF-8")
    return None


def misplaced(key: str, overrides: Sequence[str]) -> SettingsError | None:
    """Return the error for a chosen file whose settings Hydra puts below `key`, the name of its group."""
    for group, file in _chosen(overrides):
        if group.partition("/")[0] == key:
            first = file.read_text("utf-8").lstrip().partition("\n")[0]
            if first.startswith(_MARK):
                return SettingsError(file, "line 1: begins with a byte order mark", "save it as UTF-8 without one")
            if "@package" not in first:
                return SettingsError(file, f"line 1: not {GLOBAL}", "make that its first line")
    return None


def not_read(group: str, choice: str, folders: Sequence[str]) -> SettingsError | None:
    """Return the error for a `.yml` file of that name in one of Hydra's folders."""
    for folder in folders:
        file = Path(folder, group, f"{choice.removesuffix('.yml')}.yml")
        if file.is_file():
            return SettingsError(group, f"{file} is ignored", f"rename it to {file.stem}.yaml")
    return None


def _chosen(overrides: Sequence[str]) -> Iterator[tuple[str, Path]]:
    """Yield the files that `GROUP=NAME` chooses, each with its group."""
    places = [read_by_hydra(each) for each in overrides if key_of(each) == "hydra.searchpath"]
    for folder in map(str, chain.from_iterable(place.value() for place in places if place)):
        for group, each in given(overrides).items():
            for choice in (each.value or "").split(","):  # of a sweep
                file = Path(folder.removeprefix("file://"), group, f"{choice.removesuffix('.yaml')}.yaml")
                if file.is_file():
                    yield group, file
