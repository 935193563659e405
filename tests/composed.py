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
from hydra.core.config_store import ConfigStore
from omegaconf import DictConfig, ListConfig, OmegaConf
from omegaconf._utils import get_yaml_loader

from busso.command.settings import compose

_PATH = re.compile(r"(\w+)=(/[\w./-]+)")  # as pytest names folders
_OF_FILES = ("searchpath", ".py", "./")  # games and settings that lie in files, which tests change


@contextmanager
def composed_once() -> Iterator[None]:
    """Have Hydra compose what differs in paths alone once. Schemas, bounds and messages are applied anew.

    Where it composes, it reads no file of conf/ twice, and leaves the registered schemas where they are, of which it
    makes three copies for each composition.
    """
    from_hydra = compose._composed
    known: dict[tuple[str, ...], DictConfig] = {}

    def composed(config_name: str, overrides: Sequence[str]) -> DictConfig:
        paths = dict(found.groups() for each in overrides if (found := _PATH.fullmatch(each)))
        rest = [each for each in overrides if not _PATH.fullmatch(each)]
        if len(rest) + len(paths) < len(overrides) or any(part in each for each in overrides for part in _OF_FILES):
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
        mock.patch.object(ConfigStore, "__deepcopy__", lambda store, memo: store, create=True),
        mock.patch.object(file_config_source, "OmegaConf", _ReadOnce),
    ):
        yield


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
