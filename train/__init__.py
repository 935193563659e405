"""Rollout workers, replay buffer, DQN learner, checkpoints and metrics: `busso train`."""

from __future__ import annotations

import sys
import warnings
from importlib import import_module
from types import ModuleType
from typing import Any

from busso.one_name import require

require(__name__)


class _OldFunction(ModuleType):
    """The package as what `busso.train` was until 0.4, a function of the library. It goes with 0.5."""

    def __call__(self, *overrides: str, **settings: Any) -> Any:
        warnings.warn("busso.train(...) is busso.train_agent(...) now", DeprecationWarning, stacklevel=2)
        return import_module("busso.runs").train_agent(*overrides, **settings)


sys.modules[__name__].__class__ = _OldFunction
