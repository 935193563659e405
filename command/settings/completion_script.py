"""The completion of commands and settings, as a script for bash that has all words in it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from command.busso import COMMANDS
from command.conf_folder import CONF, groups_of
from command.settings.as_hydra import CFG, INFO
from command.settings.checks import SettingsError

_WITH_VALUES = (*(f"--cfg={word}" for word in CFG[:1]), *(f"--info={word}" for word in INFO))
FLAGS = ("--help", "--cfg", "--resolve", "--info", "--config-dir", *_WITH_VALUES)
# The files of conf/ whose settings a command takes, by the name of the command; others take one of their own name.
_FILES: dict[str, tuple[str, ...]] = {
    "train": ("train", "multirun"),
    "doctor": ("train",),
    "compare": ("compare", "multirun", "train"),
    "tune": ("tune", "train"),
    "exploit": ("exploit", "train"),
}
_OTHER_FLAGS = dict.fromkeys(("train", "compare", "tune"), ("--multirun",))
_NO_KEYS = ("defaults", "opponents.phases", "space", "common", "rows")  # lists and mappings


def script_for(shell: str) -> str:
    """The script for bash, also as Hydra's users ask for it: `install=bash`. Raises SettingsError for another."""
    if shell.removeprefix("install=") != "bash":
        raise SettingsError("completion", f"is for bash, not {shell!r}", "to be without it, leave its line out")
    return _BASH.format(
        cases="\n".join(f"    {name}) settings=({' '.join(map(repr, words_of(name)))}) ;;" for name in COMMANDS),
        names="\n".join(f"    {module}) name='{name}' ;;" for module, name in _modules().items()),
        commands=" ".join(COMMANDS),
        modules=" ".join(_modules()),
    )


def words_of(command: str) -> list[str]:
    """What may follow a command: flags, `key=` and `group=choice`. A value that is known is there in full."""
    files = [CONF / f"{name}.yaml" for name in _FILES.get(command, (command,))]
    files = [file for file in files if file.exists()]
    words = [*FLAGS, *_OTHER_FLAGS.get(command, ())] if files else ["--help"]
    for file in files:
        for group in groups_of(file):
            words += _of_group(group)
        words += _of_keys(_content(file))
    return list(dict.fromkeys(words))


def _of_group(group: str) -> Iterator[str]:
    """`group=choice` and the keys in those files."""
    for path in sorted((CONF / group).glob("*.yaml")):
        yield f"{group}={path.stem}"
        if group != "experiment":  # sets what others explain
            is_global = path.read_text().startswith("# @package _global_")
            yield from _of_keys(_content(path), "" if is_global else f"{group}.")


def _content(path: Path) -> dict[str, Any]:
    return yaml.safe_load(path.read_text()) or {}


def _of_keys(values: dict[str, Any], prefix: str = "") -> Iterator[str]:
    for key, value in values.items():
        if prefix + key in _NO_KEYS or (prefix, key) in (("", "algo"), ("game.", "name"), ("rollout.", "kind")):
            continue
        if isinstance(value, dict):
            yield from _of_keys(value, f"{prefix}{key}.")
        elif isinstance(value, bool):
            yield from (f"{prefix}{key}=true", f"{prefix}{key}=false")
        else:
            yield f"{prefix}{key}="


def _modules() -> dict[str, str]:
    """Commands by what `python -m` is given."""
    plain = {name: each for name, each in COMMANDS.items() if not each.first}
    return {each.module.removesuffix(".__main__"): name for name, each in plain.items()}


_BASH = """\
# Completion of busso for bash.
_busso_settings() {{ # NAME: sets settings
    settings=()
    case $1 in
{cases}
    esac
}}

_busso_reply() {{ # NAME CURRENT: bash has cut the word at = and :, and replaces what follows the last of them
    local settings word cut=${{2%"${{2##*[=:]}}"}}
    _busso_settings "$1"
    COMPREPLY=()
    for word in "${{settings[@]}}"; do
        [[ $word == "$2"* ]] && COMPREPLY+=("${{word#"$cut"}}")
    done
    [[ ${{#COMPREPLY[@]}} == 1 && ${{COMPREPLY[0]}} == *= ]] && compopt -o nospace 2>/dev/null
    return 0
}}

_busso() {{
    local line=${{COMP_LINE:0:COMP_POINT}}
    local current=${{line##*[[:space:]]}} name=${{COMP_WORDS[1]}}
    if ((COMP_CWORD <= 1)); then
        mapfile -t COMPREPLY < <(compgen -W "{commands} --help --version" -- "$current")
        return
    fi
    _busso_reply "$name" "$current"
}}

_busso_python() {{ # python -m MODULE ...: what else Python is given is completed as before
    local line=${{COMP_LINE:0:COMP_POINT}} name='' module
    local current=${{line##*[[:space:]]}}
    [[ $line =~ [[:space:]]-m[[:space:]]+([a-z_.]*)([[:space:]]|$) ]] || return
    module=${{BASH_REMATCH[1]}}
    if [[ $line =~ -m[[:space:]]+[a-z_.]*$ ]]; then
        mapfile -t COMPREPLY < <(compgen -W "{modules}" -- "$current")
        return
    fi
    case $module in
{names}
    *) return ;;
    esac
    [[ $module == train && $line =~ -m[[:space:]]+train[[:space:]]+doctor[[:space:]] ]] && name=doctor
    _busso_reply "$name" "$current"
}}

complete -o default -F _busso busso
complete -o bashdefault -o default -F _busso_python python python3
"""
