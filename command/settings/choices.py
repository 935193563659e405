"""Errors about choices of config groups: an unknown choice, and a setting that belongs to another choice."""

from collections.abc import Sequence
from pathlib import Path

from busso.command.conf_folder import CONF, choices_with, groups_of
from busso.command.settings.checks import SettingsError
from busso.command.settings.nearest import nearest
from busso.command.settings.overrides import key_of
from busso.command.settings.own_files import not_read
from busso.command.settings.quoting import for_shell


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
