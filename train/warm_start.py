"""Start of a run from another run's network instead of random weights."""

from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

import torch

from busso.base import own_files
from busso.command.settings.checks import SettingsError
from busso.command.settings.quoting import given, value_text
from busso.train.network.build import build_network, weights_for
from busso.train.players import champion_file as champion
from busso.train.players.resolve import resolve_network
from busso.train.players.trained import check_name, holds_table, load_champion, load_network
from busso.train.rollout.request import Weights
from busso.train.run import checkpoint
from busso.train.settings.dqn import NetworkSettings, TrainSettings
from busso.train.settings.resolve import AnyRunSettings, ResolvedSettings

KEY = "network.init_from"
_SHAPE = ("module", "hidden", "symmetric", "inputs", "dueling")


def with_shape_of_start(chosen: ResolvedSettings, begun: AnyRunSettings | None) -> ResolvedSettings:
    """Return the settings with the shape of the initial network, and without random play at first.

    A resumed run keeps both from its latest start, `begun`, as that network may be gone. Raises SettingsError if the
    network is missing, for another game, or the command line gives another shape.
    """
    settings = chosen.settings
    if not isinstance(settings, TrainSettings) or settings.network.init_from is None:
        return chosen
    given_keys = given(chosen.given)
    if isinstance(begun, TrainSettings) and begun.network.init_from == settings.network.init_from:
        return replace(chosen, settings=_as_begun(settings, begun, given_keys))
    trained = _read(settings)[1]
    shape, learned = _whole(trained, settings), _other_options(trained, settings)
    for name in _SHAPE:
        own, theirs = getattr(settings.network, name), getattr(shape, name)
        typed = given_keys.get(f"network.{name}")
        if typed is not None and own != theirs and not _names_file_of(typed.value, theirs):
            raise SettingsError(
                KEY,
                f"the network of {settings.network.init_from} has network.{name}={theirs}, not {own}",
                "leave that out",
            )
    network = replace(settings.network, **{name: getattr(shape, name) for name in _SHAPE})
    explore = settings.exploration
    if "exploration.start" not in given_keys:  # no need for random play at first
        explore = replace(explore, start=explore.end)
    shape_text = network.module or f"hidden={network.hidden}"
    begins = f"starts from the weights of {settings.network.init_from}, with its shape, {shape_text}"
    return replace(
        chosen,
        settings=replace(settings, network=network, exploration=explore),
        notes=(*chosen.notes, f"{KEY}: {begins}{learned}"),
    )


def _as_begun(settings: TrainSettings, begun: TrainSettings, typed: Mapping[str, object]) -> TrainSettings:
    """Return the settings with the shape and exploration of the run's latest start, except where typed."""
    shape = {name: getattr(begun.network, name) for name in _SHAPE if f"network.{name}" not in typed}
    start = (settings if "exploration.start" in typed else begun).exploration.start
    network, explore = replace(settings.network, **shape), replace(settings.exploration, start=start)
    return replace(settings, network=network, exploration=explore)


def weights_to_begin_with(settings: TrainSettings) -> Weights:
    """Return the weights of the network of `network.init_from`. Raises SettingsError or CheckpointError.

    A network trained with other game options may lack bits of the observation (`weights_for`).
    """
    weights, trained = _read(settings)
    if settings.network.module is not None:
        return weights
    learned, new = build_network(trained.load_game(), trained), build_network(settings.load_game(), settings)
    return weights_for(new, learned, weights)


def _read(settings: TrainSettings) -> tuple[Weights, TrainSettings]:
    """Return the weights and their training settings: the same game, perhaps with other options."""
    text, cpu = settings.network.init_from or "", torch.device("cpu")
    path = resolve_network(settings.load_game(), text, KEY)
    if path.suffix == champion.SUFFIX:
        found = champion.read(path)
        weights, trained = found.weights, found.settings
        load_champion(trained.load_game(), path, cpu, KEY)
    else:
        path, state = checkpoint.load_named(path)
        if holds_table(state):
            raise SettingsError(KEY, f"{path} contains a table, not a network", "use null")
        weights, trained = state["acting"], load_network(None, path, state, cpu, KEY)[1]
    check_name(settings.load_game(), trained, path, KEY)
    return weights, trained


def _other_options(trained: TrainSettings, settings: TrainSettings) -> str:
    """Describe the options that the network was trained with, if they differ from the run's."""
    here, there = (asdict(each.load_game().options) for each in (settings, trained))
    other = [f"game.{key}={value_text(value)}" for key, value in there.items() if value != here.get(key)]
    return f"; it learned with {' '.join(other)}" if other else ""


def _whole(trained: TrainSettings, settings: TrainSettings) -> NetworkSettings:
    """Return the shape as settings, with `inputs` null if the network sees all bits."""
    shape, bits = trained.network, trained.load_game().bits
    sees_all = shape.inputs == bits and (shape.module is None or bits == settings.load_game().bits)
    return NetworkSettings(**asdict(shape) | {"inputs": None if sees_all else shape.inputs})


def _names_file_of(typed: str | None, module: Any) -> bool:
    """Return whether the text typed is the file of the module without a name, as in `network=./net.py`."""
    words = own_files.parted(typed or "")
    if not module or words is None or words[1]:
        return False
    return own_files.find(words[0]) == own_files.find(module.partition(":")[0])
