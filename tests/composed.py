"""Settings that tests ask for again and again, each time for another folder: Hydra needs a tenth of a second each."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING
from unittest import mock

from busso.command.settings import compose

if TYPE_CHECKING:
    from omegaconf import DictConfig

_FOLDER = re.compile(r"runs=(/[\w./-]+)")  # as pytest names them


@contextmanager
def composed_once() -> Iterator[None]:
    """Have Hydra compose what differs in `runs=FOLDER` alone once. Schemas, bounds and messages are applied anew."""
    from_hydra = compose._composed
    known: dict[tuple[str, ...], DictConfig] = {}

    def composed(config_name: str, overrides: Sequence[str]) -> DictConfig:
        folders = [each for each in overrides if each.startswith("runs=")]
        found = _FOLDER.fullmatch(folders[0]) if len(folders) == 1 else None
        if found is None or any("searchpath" in each for each in overrides):
            return from_hydra(config_name, overrides)
        rest = [each for each in overrides if not each.startswith("runs=")]
        key = (str(compose.CONF), config_name, *rest)
        if key not in known:
            known[key] = from_hydra(config_name, [*rest, "runs=elsewhere"])
        own = copy.deepcopy(known[key])
        own.runs = found[1]
        return own

    with mock.patch.object(compose, "_composed", composed):
        yield
