"""Searches of `busso tune` within one process."""

from collections.abc import Sequence
from functools import cache

from hydra import compose, initialize_config_dir

from busso.command.conf_folder import CONF
from busso.command.settings.trusted import trust_games
from busso.train.tune.settings import Search, as_params, search_of


def search(overrides: Sequence[str]) -> Search:
    """Return the search of a command line. Raises SettingsError."""
    return _search(*as_params(overrides))


@cache  # simulated processes share command lines, and each composition takes 0.3 s
def _search(*overrides: str) -> Search:
    trust_games(overrides)  # like the command, for a game in a file
    with initialize_config_dir(str(CONF), version_base="1.3"):
        config = compose("tune", list(overrides), return_hydra_config=True)
    return search_of(config, config.hydra.sweeper.params, overrides)
