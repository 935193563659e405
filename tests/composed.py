"""Settings that tests ask for again and again, each time for another folder: Hydra needs a fifth of a second each."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast
from unittest import mock

from hydra._internal.config_loader_impl import ConfigLoaderImpl
from hydra.core.config_store import ConfigStore
from hydra.core.utils import JobRuntime
from omegaconf import DictConfig, OmegaConf

_FOLDER = re.compile(r"runs=(/[\w./-]+)")  # as pytest names them
_ELSEWHERE = "runs=elsewhere"
_OF_FILES = (".py", "searchpath")  # what such an override chooses may be another thing the next time


@contextmanager
def composed_once() -> Iterator[None]:
    """Have Hydra compose what differs in `runs=FOLDER` alone once. Schemas, bounds and messages are applied anew."""
    load = ConfigLoaderImpl.load_configuration
    known: dict[tuple[Any, ...], DictConfig] = {}

    def loaded(loader: ConfigLoaderImpl, config_name: str | None, overrides: list[str], **how: Any) -> DictConfig:
        places = loader.config_search_path.get_path()
        if any(each.provider == "command-line" for each in places) or any(
            part in each for part in _OF_FILES for each in overrides
        ):
            return load(loader, config_name, overrides, **how)
        folders = [each for each in overrides if _FOLDER.fullmatch(each)]
        plain = [_ELSEWHERE if folders == [each] else each for each in overrides]
        where = tuple(str(each.path) for each in places)
        key = (where, id(ConfigStore.instance().repo), JobRuntime().get("name"), config_name, *how.items(), *plain)
        if key not in known:
            known[key] = load(loader, config_name, plain, **how)
        own = copy.deepcopy(known[key])
        own.hydra.runtime.cwd = str(Path.cwd())
        if len(folders) == 1:
            (folder,) = folders
            own.runs = folder.removeprefix("runs=")
            told = cast("dict[str, Any]", OmegaConf.to_container(own.hydra, resolve=False))
            own.hydra.overrides.task[told["overrides"]["task"].index(_ELSEWHERE)] = folder
            own.hydra.job.override_dirname = told["job"]["override_dirname"].replace(_ELSEWHERE, folder)
        return own

    with mock.patch.object(ConfigLoaderImpl, "load_configuration", loaded):
        yield
