"""Which settings a command line of `python -m train` has: that follows from the algorithm and the game it names."""

from __future__ import annotations

from collections.abc import Sequence

from command.settings.compose import chosen_algo, compose
from train.settings.batch_q import BATCH_Q_LEARNING, BatchQSettings
from train.settings.dqn import TrainSettings
from train.settings.tabular import ALGORITHMS, TabularSettings

AnyRunSettings = TrainSettings | BatchQSettings | TabularSettings


def settings_of(overrides: Sequence[str]) -> AnyRunSettings:
    """What the overrides make of the settings of their algorithm. Raises SettingsError."""
    given = list(overrides)
    algo = chosen_algo(given)
    if algo == BATCH_Q_LEARNING:
        return compose(BatchQSettings, "batch_q", given)
    if algo in ALGORITHMS:
        return compose(TabularSettings, "tabular", given)
    return compose(TrainSettings, "train", given)
