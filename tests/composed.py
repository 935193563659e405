"""Cache of composed settings: tests repeat them with other folders, and Hydra takes 0.2 s each time."""

import copy
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast
from unittest import mock

from hydra._internal import defaults_list
from hydra._internal.config_loader_impl import ConfigLoaderImpl
from hydra.core.config_store import ConfigStore
from hydra.core.utils import JobRuntime
from omegaconf import DictConfig, OmegaConf

from busso.command.settings import compose
from busso.command.settings.game import load_configured_game
from busso.command.settings.quoting import parsed
from busso.command.settings.text import FileConfigSource
from busso.command.settings.trusted import group_of

_PATH = re.compile(r"(\w+)=(/[\w./-]+)")  # pytest's folder names
_OF_FILES = ("searchpath", ".py", "./")  # games and settings in files, which tests change


class ReadFiles:
    """Settings of the files that command lines choose, before values of the command line, by what chooses them."""

    def __init__(self) -> None:
        self._files: dict[tuple[Any, ...], DictConfig] = {}
        self._lists: dict[tuple[Any, ...], Any] = {}

    @contextmanager
    def during(self, place: tuple[Any, ...]) -> Iterator[None]:
        """Read files once for this search path and process."""
        merge, choose = ConfigLoaderImpl._compose_config_from_defaults_list, defaults_list._create_defaults_list

        def chosen(repo: Any, config_name: str | None, overrides: Any, **how: bool) -> Any:
            given = {name: value for name, value in vars(overrides).items() if name != "config_overrides"}
            key = (*place, config_name, repr(given), *how.items())
            if key not in self._lists:
                found = choose(repo, config_name, overrides, **how)
                self._lists[key] = found, copy.deepcopy(given)
            found, noted = self._lists[key]
            vars(overrides).update(copy.deepcopy(noted))  # Hydra notes there which choices were used
            return found

        def merged(loader: ConfigLoaderImpl, defaults: list[Any], repo: Any) -> DictConfig:
            key = (*place, repr(defaults))
            if key not in self._files:
                self._files[key] = merge(loader, defaults, repo)
            return copy.deepcopy(self._files[key])

        with (
            mock.patch.object(ConfigLoaderImpl, "_compose_config_from_defaults_list", merged),
            mock.patch.object(defaults_list, "_create_defaults_list", chosen),
        ):
            yield


@contextmanager
def composed_once() -> Iterator[None]:
    """Compose settings that differ only in paths once, and those of the files that a command line chooses.

    Values of the command line, schemas, bounds and messages are applied each time. Composition does not copy the
    registered schemas, which Hydra does three times.
    """
    load, kept = ConfigLoaderImpl.load_configuration, ReadFiles()
    known: dict[tuple[Any, ...], DictConfig] = {}

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
            with kept.during((*of_process, FileConfigSource.known)):
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
        mock.patch.object(ConfigStore, "__deepcopy__", lambda store, memo: store, create=True),
    ):
        yield


def _is_of_conf(override: str) -> bool:
    """Return whether an override only selects files of busso's conf/."""
    found = parsed(override)
    return not (compose.CONF / found.key).is_dir() or (compose.CONF / found.key / f"{found.value}.yaml").exists()


def game_defaults(name: str) -> dict[str, Any]:
    """Return the settings group `game` with the defaults of a game."""
    return group_of(load_configured_game({"name": name}))
