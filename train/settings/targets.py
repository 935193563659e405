"""Targets of a network: lambda returns, or bootstrapping with a target network."""

from collections.abc import Mapping
from dataclasses import dataclass, fields, make_dataclass
from typing import Any

from busso.cards.base.bounds import bounded
from busso.command.settings.checks import MAX_COUNT, SettingsError, check_numbers, check_one_of
from busso.command.settings.compose import settings_from_dict

Discounts = tuple[float, float]  # of what follows a decision without a reward, and one with a reward


@dataclass
class LambdaReturns:
    """Targets computed by the players, from the values by which they play."""

    kind: str = "lambda_returns"
    td_lambda: float = bounded(0.6, 0.0, 1.0)

    def __post_init__(self) -> None:
        check_numbers("target", self)


@dataclass
class TargetNetwork:
    """Targets computed by the learner, with a delayed copy of the network."""

    kind: str = "target_network"
    n_step: int = bounded(2, 1, 1_000_000)
    tau: float = bounded(0.01, 0.0, 1.0)
    update_interval: int = bounded(2000, 1, MAX_COUNT)

    def __post_init__(self) -> None:
        check_numbers("target", self)


Targets = LambdaReturns | TargetNetwork
_SCHEMAS: dict[str, type[Targets]] = {schema.kind: schema for schema in (LambdaReturns, TargetNetwork)}


def targets_of(values: Any) -> Targets:
    """Return the settings of the group `target`. Raises SettingsError, also for a setting of another kind.

    Such a setting comes from a file, or from changing only `target.kind`.
    """
    if isinstance(values, Targets):
        return values
    if not isinstance(values, Mapping):
        raise SettingsError("target", f"expected one of {', '.join(_SCHEMAS)}, not {values!r}")
    kind = values.get("kind")
    check_one_of("target.kind", str(kind), *_SCHEMAS)
    schema = _SCHEMAS[str(kind)]
    for other in _SCHEMAS.values():
        strange = (_names(other) - _names(schema)) & values.keys()
        if strange and not _names(schema) <= values.keys():
            raise SettingsError("target.kind", f"the settings belong to {other.kind}", f"use target={kind}")
        if strange:
            raise SettingsError(f"target.{min(strange)}", f"unknown setting of {kind}", f"use target={other.kind}")
    whole = make_dataclass("Settings", [("target", schema)])  # so that errors name `target.`
    found: Targets = settings_from_dict(whole, {"target": values}).target
    return found


def _names(schema: type[Targets]) -> set[str]:
    return {field.name for field in fields(schema)}
