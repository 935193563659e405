"""Groups of settings with the defaults of conf/ for any game, and changes, for tests that need one group alone."""

from functools import partial
from typing import Any, TypeVar

from busso.command.conf_folder import values_of_conf
from busso.command.settings.compose import settings_from_dict
from busso.train.settings.dqn import EvaluationSettings, LearnerSettings, RolloutSettings, targets_of

T = TypeVar("T")


def _group(schema: type[T], name: str, **changes: Any) -> T:
    return settings_from_dict(schema, values_of_conf("algo/dqn")[name] | changes)


def _targets(kind: str, **changes: Any) -> Any:
    return targets_of({"kind": kind} | changes)


learner_settings = partial(_group, LearnerSettings, "learner")
rollout_settings = partial(_group, RolloutSettings, "rollout")
evaluation_settings = partial(_group, EvaluationSettings, "evaluation")
network_targets = partial(_targets, "target_network")
lambda_targets = partial(_targets, "lambda_returns")
