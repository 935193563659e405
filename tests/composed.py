"""Settings that tests ask for again and again, each time for another folder: Hydra needs a fifth of a second each."""

from __future__ import annotations

import copy
import functools
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any
from unittest import mock

import yaml
from hydra._internal.core_plugins import file_config_source
from hydra._internal.hydra import Hydra
from hydra.core.config_store import ConfigStore
from omegaconf import DictConfig, ListConfig, OmegaConf
from omegaconf._utils import get_yaml_loader

from busso.command.settings import compose
from busso.command.settings.overrides import parsed

_PATH = re.compile(r"(\w+)=(/[\w./-]+)")  # as pytest names folders
_OF_FILES = (".py", "./")  # games and players, which tests change


@contextmanager
def composed_once() -> Iterator[None]:
    """Have Hydra compose what differs in paths alone once. Schemas, bounds and messages are applied anew.

    Where it composes, it reads no file of conf/ twice, and leaves the registered schemas where they are, of which it
    makes three copies for each composition. Of a command it composes the settings a first time only to learn whether
    they say `hydra.mode`, which those of busso do not.
    """
    from_hydra, mode_of = compose._composed, Hydra.get_mode
    known: dict[tuple[str, ...], DictConfig] = {}

    def get_mode(hydra: Hydra, config_name: str | None, overrides: list[str]) -> Any:
        own = "provider=command-line" in str(hydra.config_loader.get_search_path())
        return mode_of(hydra, config_name, overrides) if own or not all(map(_is_ours, overrides)) else None

    def composed(config_name: str, overrides: Sequence[str]) -> DictConfig:
        paths = dict(found.groups() for each in overrides if (found := _PATH.fullmatch(each)))
        rest = [each for each in overrides if not _PATH.fullmatch(each)]
        of_files = any(part in each for each in overrides for part in _OF_FILES)
        if of_files or len(rest) + len(paths) < len(overrides) or not all(map(_is_ours, overrides)):
            return from_hydra(config_name, overrides)
        key = (str(compose.CONF), config_name, *rest, *sorted(paths))
        if key not in known:
            known[key] = from_hydra(config_name, [*rest, *(f"{name}=elsewhere" for name in paths)])
        own = copy.deepcopy(known[key])
        for name, path in paths.items():
            own[name] = path
        return own

    with (
        mock.patch.object(compose, "_composed", composed),
        mock.patch.object(Hydra, "get_mode", get_mode),
        mock.patch.object(ConfigStore, "__deepcopy__", lambda store, memo: store, create=True),
        mock.patch.object(file_config_source, "OmegaConf", _ReadOnce),
    ):
        yield


def _is_ours(override: str) -> bool:
    """Return whether an override chooses nothing but files of busso's conf/, and nothing of Hydra."""
    found = parsed(override)
    choice = not (compose.CONF / found.key).is_dir() or (compose.CONF / found.key / f"{found.value}.yaml").exists()
    return choice and not found.sign and "hydra" not in override


class _ReadOnce(OmegaConf):
    """OmegaConf for Hydra's files of settings: what a text says is kept."""

    @staticmethod
    def load(file: Any) -> DictConfig | ListConfig:
        with suppress(yaml.YAMLError):
            if isinstance(found := _parsed(file.read()), dict):
                return OmegaConf.create(found)
        file.seek(0)  # errors name the file
        return OmegaConf.load(file)


@functools.cache
def _parsed(text: str) -> Any:
    return yaml.load(text, Loader=get_yaml_loader())  # type: ignore[no-untyped-call]
