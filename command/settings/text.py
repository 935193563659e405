"""Settings that are text, which stays as it was typed: Hydra and YAML read 12e4567 as infinity, and 1.10 as 1.1."""

import re
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import is_dataclass
from functools import cache
from pathlib import Path
from typing import Any, get_type_hints

import yaml
from hydra._internal.core_plugins import file_config_source
from hydra._internal.sources_registry import SourcesRegistry
from hydra.conf import HydraConf
from hydra.plugins.config_source import ConfigResult
from omegaconf import OmegaConf

from busso.command.conf_folder import CONF, value_at
from busso.command.settings.quoting import key_of

_NUMBER = r"[+-]?(?:\d[\d_]*\.?[\d_]*|\.\d[\d_]*)(?:e[+-]?\d[\d_]*)?|[+-]?(?:inf|nan)|true|false"
# Quotes and functions of numbers, which stay as they are, or a number as a whole element of a value.
_ELEMENT = re.compile(
    rf"""('(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*"|\b(?:range|interval)\([^()]*\))"""
    rf"|((?:^|[\[,(])\s*)({_NUMBER})(?=\s*(?:[\],)]|$))",
    re.IGNORECASE,
)


@cache
def text_keys(schema: Hashable, prefix: str = "") -> frozenset[str]:
    """Return the dotted keys of a dataclass that are text, optional text, lists of text or `Annotated[Any, str]`."""
    hints = _hints(schema, prefix)
    return frozenset(
        key for key, hint in hints if hint in (str, str | None, list[str]) or str in getattr(hint, "__metadata__", ())
    )


@cache
def list_keys(schema: Hashable, prefix: str = "") -> frozenset[str]:
    """Return the dotted keys of a dataclass that may be lists: typed as such, or as anything."""
    return frozenset(key for key, hint in _hints(schema, prefix) if getattr(hint, "__origin__", hint) in (Any, list))


def _hints(schema: Any, prefix: str) -> Iterator[tuple[str, Any]]:
    for name, hint in get_type_hints(schema, include_extras=True).items():
        if is_dataclass(hint):
            yield from _hints(hint, f"{prefix}{name}.")
        else:
            yield prefix + name, hint


class FileConfigSource(file_config_source.FileConfigSource):
    """Hydra's reader of YAML files, in which text settings keep what is written. A sweep's processes unpickle it."""

    known = text_keys(HydraConf, "hydra.")  # of all schemas of this process
    lists = list_keys(HydraConf, "hydra.")

    def __init__(self, provider: str, path: str) -> None:
        super().__init__(provider, path)
        self.texts = self.known

    def load_config(self, config_path: str) -> ConfigResult:
        """Read a file; take numbers in text settings as written."""
        found = super().load_config(config_path)
        package = found.header["package"] or config_path.rpartition("/")[0].replace("/", ".")
        start = "" if package in ("", "_global_") else f"{package}."
        values = OmegaConf.to_container(found.config)
        names = [key.removeprefix(start) for key in self.texts if key.startswith(start)]
        if misread := [name for name in names if _has_number(value_at(values, name))]:
            file = Path(self.path, self._normalize_file_name(config_path))
            written = yaml.load(file.read_text(encoding="utf-8"), yaml.BaseLoader)
            for name in misread:
                OmegaConf.update(found.config, name, value_at(written, name))
        return found


def as_typed(overrides: Sequence[str], *schemas: Any, prefix: str = "") -> list[str]:
    """Quote what Hydra would read as numbers in the text settings of these schemas, in the command line and in files.

    Settings that are text in an earlier call are so in later ones.
    """
    FileConfigSource.known = FileConfigSource.known.union(*(text_keys(schema, prefix) for schema in schemas))
    FileConfigSource.lists = FileConfigSource.lists.union(*(list_keys(schema, prefix) for schema in schemas))
    SourcesRegistry.instance().types["file"] = FileConfigSource
    typed = []
    for each in overrides:
        key, equals, value = each.partition("=")
        name = re.sub(r"\.\d+$", "", key_of(each))
        if name in FileConfigSource.known or (CONF / name).is_dir():  # a group, whose choices are names of files
            value = _ELEMENT.sub(lambda found: found[1] or f"{found[2]}'{found[3]}'", value)
        typed.append(key + equals + value)
    return typed


def _has_number(value: Any) -> bool:
    return any(isinstance(each, int | float) for each in (value if isinstance(value, list) else [value]))
