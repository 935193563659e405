"""The folder conf/, which has the settings of the commands, and its groups."""

from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path, PurePath
from typing import Any

import yaml

CONF = (Path(__file__).parent.parent / "conf").resolve()  # busso/conf, in a clone a link to conf


def own_games() -> list[str]:
    """Return the shipped games, those with a file conf/game/NAME.yaml."""
    return sorted(path.stem for path in (CONF / "game").glob("[!.]*.yaml"))


def groups_of(file: Path) -> Iterator[str]:
    """Yield the config groups in the defaults list of a file and, recursively, in those of their files."""
    for each in included(file):
        yield from groups_of(each)
    for entry in _defaults(file):
        for name in entry if isinstance(entry, dict) else ():
            if not name.startswith("override "):
                group = name.removeprefix("optional ").removeprefix("/")
                yield group
                for path in sorted((CONF / group).glob("[!.]*.yaml")):
                    yield from groups_of(path)


def choices_with(key: str) -> list[str]:
    """Return the choices that have a setting `GROUP.NAME`, such as `rollout=ray`."""
    group, _, name = key.partition(".")
    found = []
    for path in sorted((CONF / group).glob("[!.]*.yaml")):
        text = path.read_text(encoding="utf-8")
        own = text.startswith(f"# @package {group}\n")  # other files hold settings of any group
        if own and name in yaml.safe_load(text):
            found.append(f"{group}={path.stem}")
    return found


def included(file: Path) -> list[Path]:
    """Return the files in the defaults list of a file that are outside groups, without those of Hydra's settings."""
    names = [entry for entry in _defaults(file) if isinstance(entry, str)]
    return [file.parent / f"{name}.yaml" for name in names if not name.startswith(("_self_", "hydra/"))]


@cache
def values_of_conf(name: str) -> dict[str, Any]:
    """Return the values in conf/<name>.yaml, and in the files that its defaults list names literally, without Hydra's.

    Hydra composes what users type; this is for keys that a saved file or a group's choice lacks.
    """
    file = CONF / f"{name}.yaml"
    own = yaml.safe_load(file.read_text(encoding="utf-8"))
    found: dict[str, Any] = {}
    for entry in own.pop("defaults", ["_self_"]):
        if isinstance(entry, dict):
            chosen = [(group[1:], choice) for group, choice in entry.items() if group.startswith("/")]
            more = {group: values_of_conf(f"{group}/{choice}") for group, choice in chosen}
        elif entry == "_self_":
            more = own
        else:
            more = {} if entry.startswith("hydra/") else values_of_conf(str(PurePath(name).parent / entry))
        found = merged(found, more)
    return {key: value for key, value in found.items() if key != "hydra"}


def merged(under: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Return nested dictionaries with the values of `over`, and those of `under` for keys that it lacks."""
    both = {
        key: merged(under[key], value) if isinstance(value, Mapping) and isinstance(under.get(key), Mapping) else value
        for key, value in over.items()
    }
    return {**under, **both}


def value_at(values: Any, key: str) -> Any:
    """Return the value of a dotted key in nested dictionaries, None if it is missing."""
    for part in key.split("."):
        values = values.get(part) if isinstance(values, dict) else None
    return values


def _defaults(file: Path) -> list[Any]:
    return (yaml.safe_load(file.read_text(encoding="utf-8")) or {}).get("defaults", [])


def explained_settings(config_name: str) -> str:
    """Return conf/<config_name>.yaml and the files of its groups, with comments, as a template for --help."""
    file = CONF / f"{config_name}.yaml"
    groups = dict.fromkeys(group for group in groups_of(file) if group not in ("experiment", "row"))  # global ones
    files = [file, *included(file), *(path for group in groups for path in sorted((CONF / group).glob("[!.]*.yaml")))]
    text = "\n".join(f"--- {path.relative_to(CONF.parent)}\n{path.read_text(encoding='utf-8')}" for path in files)
    return text.replace("$", "$$")
