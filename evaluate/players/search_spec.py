"""`search(RUN):key=value`, as a player."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import torch

from cards.game import Game
from cards.player_specs import Spec, read_options
from command.settings.checks import SettingsError
from evaluate.players.search_spike import SpikeSearch, SpikeSearchOptions
from evaluate.players.search_tressette import SearchOptions, SearchPlayer
from train.dqn.players.load import load_learned

# Rewards whose sum is what a search counts, and whether that is who wins rather than by how much.
_REWARDS = {"points": False, "win": True}


def load_search(game: Game, path: Path, options: Mapping[str, str], device: torch.device) -> SearchPlayer | SpikeSearch:
    """The search with the network of a run, a checkpoint or a champion, in Tressette or Corellian Spike.

    Raises ValueError for bad options, SettingsError for another game and for a network that has learned what a search
    cannot count, CheckpointError for a file that is missing or damaged or holds no network.
    """
    spec = Spec("search", str(path), options)
    if game.name == "spike":
        few = read_options(SpikeSearchOptions, spec)
        return SpikeSearch(game, load_learned(game, str(path), device)[1], few)
    chosen = read_options(SearchOptions, spec)
    if game.name != "tressette":
        raise SettingsError("players", f"search plays tressette and spike, not {game.name}")
    path, network, settings = load_learned(game, str(path), device)
    reward = settings.reward_name(game)
    if reward not in _REWARDS:
        known = " or ".join(_REWARDS)
        raise SettingsError("players", f"{path} has learned the reward {reward}", f"search needs a network of {known}")
    return SearchPlayer(game, network, chosen, device, counts_wins=_REWARDS[reward])
