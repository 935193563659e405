"""Mistakes on the command line and in settings files that Hydra does not explain: unknown keys, choices and files."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from itertools import chain
from pathlib import Path

import yaml

from busso.command.conf_folder import CONF, choices_with, groups_of
from busso.command.settings.checks import SettingsError
from busso.command.settings.quoting import for_shell, given, key_of, read_by_hydra

ALIKE = 0.7  # ratio of similarity, at most 1, from which two words are alike
GLOBAL = "# @package _global_"
_MARK = "\ufeff"  # byte order mark, written by some editors


def nearest(key: str, known: Iterable[str]) -> str | None:
    """Return the known key that `key` may stand for: same last part (`lr`: learner.lr), or similar spelling."""
    known, name = list(known), key.rpartition(".")[2]
    same = [each for each in known if each.rpartition(".")[2] == name]
    found = get_close_matches(key, same or known, 1, 0.0 if same else ALIKE)
    return found[0] if found else None


def dotted(values: Mapping[str, object], prefix: str = "") -> Iterator[str]:
    """Yield the dotted keys of nested dictionaries, including those of groups."""
    for name, value in values.items():
        yield prefix + name
        if isinstance(value, Mapping):
            yield from dotted(value, f"{prefix}{name}.")


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


def no_such_choice(group: str, choice: str, lines: Sequence[str]) -> SettingsError:
    """Return the error for an unknown choice; the lines of Hydra's message list the available ones."""
    if own := not_read(group, choice, [line.partition("path=file://")[2] for line in lines if "path=file://" in line]):
        return own
    there = [line for line in lines[1:] if "search path" not in line and "provider=" not in line]
    if not there:  # in the defaults list of another group's file
        name = group.rpartition("/")[2]
        return SettingsError(
            group, f"unknown choice {choice!r}", f"in the file's defaults list write `override /{name}: {choice}`"
        )
    if f"'{group}'" not in lines[0]:  # the group follows the game, and the choices are those of the outer group
        outer = group.partition("/")[0]
        choices = " or ".join(f"{outer}={each}" for each in there)
        return SettingsError(outer, f"missing conf/{group}/{choice}.yaml", f"use {choices}, or write that file")
    elsewhere = ""
    if group == "game":
        elsewhere = f"; for a game of your own use game=./{choice if Path(f'{choice}.py').is_file() else 'NAME'}.py"
    near = nearest(choice, there)
    known = f"did you mean {near}? Available:" if near else "available:"
    return SettingsError(group, f"unknown choice {choice!r}", f"{known} {', '.join(there)}{elsewhere}")


def of_other_choice(key: str, overrides: Sequence[str], config_name: str) -> SettingsError | None:
    """Return the error for a setting that another choice of its group has, such as `rollout.workers`."""
    group = key.partition(".")[0]
    choices = choices_with(key) if group in groups_of(CONF / f"{config_name}.yaml") else []
    if not choices:
        return None
    own = (each for each in overrides if key_of(each).startswith(f"{group}."))
    typed = [for_shell(each) for each in own if choices[0] in choices_with(key_of(each))]
    return SettingsError(key, f"belongs to {' and '.join(choices)}", f"use {' '.join([choices[0], *typed])}")
