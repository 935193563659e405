"""Cache of composed settings: tests repeat them with other folders, and Hydra takes 0.2 s each time."""

from __future__ import annotations

import copy
import functools
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, cast
from unittest import mock

import yaml
from hydra._internal.config_loader_impl import ConfigLoaderImpl
from hydra._internal.core_plugins import file_config_source
from hydra._internal.hydra import Hydra
from hydra.core.config_store import ConfigStore
from hydra.core.utils import JobRuntime
from omegaconf import DictConfig, ListConfig, OmegaConf
from omegaconf._utils import get_yaml_loader

from busso.command.settings import compose
from busso.command.settings.overrides import parsed

_PATH = re.compile(r"(\w+)=(/[\w./-]+)")  # pytest's folder names
_OF_FILES = ("searchpath", ".py", "./")  # games and settings in files, which tests change


@contextmanager
def composed_once() -> Iterator[None]:
    """Compose settings that differ only in paths once; schemas, bounds and messages are applied each time.

    Composition reads no file of conf/ twice, and does not copy the registered schemas, which Hydra does three times.
    Hydra's preliminary composition of a command, which only looks for `hydra.mode`, is skipped because busso never sets
    it.
    """
    load, mode_of = ConfigLoaderImpl.load_configuration, Hydra.get_mode
    known: dict[tuple[Any, ...], DictConfig] = {}

    def get_mode(hydra: Hydra, config_name: str | None, overrides: list[str]) -> Any:
        own = "provider=command-line" in str(hydra.config_loader.get_search_path())
        return mode_of(hydra, config_name, overrides) if own or not all(map(_is_ours, overrides)) else None

    def loaded(loader: ConfigLoaderImpl, config_name: str | None, overrides: list[str], **how: Any) -> DictConfig:
        places = loader.get_search_path().get_path()
        paths = {found[1]: found for each in overrides if (found := _PATH.fullmatch(each))}
        plain = [f"{found[1]}=elsewhere" if (found := _PATH.fullmatch(each)) else each for each in overrides]
        of_files = any(part in each for each in overrides for part in _OF_FILES)
        of_files = of_files or any(each.provider == "command-line" for each in places)
        if of_files or len(set(plain)) < len(plain) or not all(map(_is_of_conf, overrides)):
            return load(loader, config_name, overrides, **how)
        of_process = (id(ConfigStore.instance().repo), JobRuntime().get("name"), *(str(each.path) for each in places))
        key = (*of_process, config_name, *how.items(), *plain)
        if key not in known:
            known[key] = load(loader, config_name, plain, **how)
        own = copy.deepcopy(known[key])
        own.hydra.runtime.cwd = str(Path.cwd())
        told = cast("dict[str, Any]", OmegaConf.to_container(own.hydra, resolve=False))
        for name, found in paths.items():
            own[name] = found[2]
            own.hydra.overrides.task[told["overrides"]["task"].index(f"{name}=elsewhere")] = found[0]
            told["job"]["override_dirname"] = told["job"]["override_dirname"].replace(f"{name}=elsewhere", found[0])
        own.hydra.job.override_dirname = told["job"]["override_dirname"]
        return own

    with (
        mock.patch.object(ConfigLoaderImpl, "load_configuration", loaded),
        mock.patch.object(Hydra, "get_mode", get_mode),
        mock.patch.object(ConfigStore, "__deepcopy__", lambda store, memo: store, create=True),
        mock.patch.object(file_config_source, "OmegaConf", _ReadOnce),
    ):
        yield


def _is_of_conf(override: str) -> bool:
    """Return whether an override only selects files of busso's conf/."""
    found = parsed(override)
    return not (compose.CONF / found.key).is_dir() or (compose.CONF / found.key / f"{found.value}.yaml").exists()


def _is_ours(override: str) -> bool:
    """Return whether an override selects nothing of Hydra either."""
    return _is_of_conf(override) and not parsed(override).sign and "hydra" not in override


class _ReadOnce(OmegaConf):
    """OmegaConf for Hydra's settings files, with parsed texts cached."""

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
