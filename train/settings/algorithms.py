"""Which settings a command line of `python -m train` has: that follows from the algorithm and the game it names."""

from __future__ import annotations

from collections.abc import Sequence

from command.compose import chosen_algo_and_game, compose
from command.game import load_configured_game
from train.settings.batch_q import BatchQSettings
from train.settings.dqn import TrainSettings
from train.settings.tabular import ALGORITHMS, TabularSettings

AnyRunSettings = TrainSettings | BatchQSettings | TabularSettings


def settings_of(overrides: Sequence[str]) -> AnyRunSettings:
    """What the overrides make of the settings of their algorithm. Raises SettingsError."""
    given = list(overrides)
    algo, game = chosen_algo_and_game(given)
    # A game with numbered decisions is learned from batches of self-play, one with an exact process game by game.
    if algo == "q_learning" and load_configured_game(game).numbering is not None:
        return compose(BatchQSettings, "batch_q", given)
    if algo in ALGORITHMS:
        return compose(TabularSettings, "tabular", given)
    return compose(TrainSettings, "train", given)
