"""Players by what a person calls them: a name, the folder of a run, a checkpoint or a policy in a table.

PyTorch is imported for those made of a file alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cards.champions import CHAMPION
from cards.game import Game
from cards.player_specs import Spec, parse_spec, player_names
from command.settings.checks import SettingsError
from train.dqn.players.named import file_of

if TYPE_CHECKING:
    import torch

    from cards.play import Player
    from cards.tabular.tables import TablePlayer


def _search(game: Game, path: Path, options: Mapping[str, str], device: torch.device) -> Player:
    from evaluate.players.search_spec import load_search

    return load_search(game, path, options, device)


# Players made of a file, `name(PATH):key=value`, by name: (game, path, options, device) -> player. They raise
# ValueError for bad options, and CheckpointError for a file that is missing or damaged.
KINDS: dict[str, Callable[[Game, Path, Mapping[str, str], torch.device], Player]] = {"search": _search}


def load_player(game: Game, spec: str, device: torch.device) -> Player:
    """The player that `spec` means, for this game.

    A name may have options, `monte_carlo:samples=100`, and a file, `search(runs/tressette/default):samples=100`.
    A run folder means its best network, else its newest, or the newest of its tables; a `.json` or `.npz` file is a
    policy in a table; `champion` is the network that travels with the game. Raises SettingsError for an unknown name
    or a network of another game, CheckpointError for a file that is missing or damaged.
    """
    player = player_without_file(game, spec)
    if player is not None:
        return player
    named = parse_spec(spec)
    if named is not None and named.name in KINDS:
        return _from_file(game, named, device)
    if spec != CHAMPION and file_of(game, spec) is None and not ("/" in spec or Path(spec).suffix or not spec):
        raise _no_player(game, spec)
    from train.dqn.players.load import load_frozen

    return load_frozen(game, spec, device, of_table=_learned_player)


def player_without_file(game: Game, spec: str) -> Player | None:
    """The player that the game has by this name; None for one that is made of a file, or is not there.

    Raises SettingsError for bad options.
    """
    from cards.play import named_player

    if spec in player_names(game):
        return named_player(game, spec)
    try:
        named = parse_spec(spec)
        if named is None or named.name in KINDS or not (named.options or named.argument is not None):
            return None
        return named_player(game, spec)
    except ValueError as error:
        raise SettingsError("players", error) from None


def _from_file(game: Game, spec: Spec, device: torch.device) -> Player:
    from train.run.checkpoint.checkpoint import CheckpointError

    try:
        if not spec.argument:
            raise SettingsError("players", f"{spec} needs a run", f"write {spec.name}(runs/{game.name}/default)")
        return KINDS[spec.name](game, Path(spec.argument), spec.options, device)
    except CheckpointError:
        raise
    except ValueError as error:
        raise SettingsError("players", error) from None


def _no_player(game: Game, spec: str) -> SettingsError:
    others = "".join(f", {name}(RUN)" for name in KINDS)
    known = ", ".join([*player_names(game), CHAMPION])
    hint = f"it has {known}{others}, or give a run folder"
    return SettingsError("players", f"{spec}: {game.name} has no such player", hint)


def _learned_player(game: Game, path: Path, state: dict[str, Any]) -> TablePlayer:
    """The greedy policy of a table of action values; where no action was ever tried, the first legal one."""
    from cards.tabular.tables import TablePlayer
    from train.dqn.players.load import check_game
    from train.tabular.errors import learned_policy
    from train.tabular.trainer import load_model, table_of

    table = table_of(path, state)
    check_game(game, table.settings, path)
    if table.settings.policy is not None:
        holds = f"{path} holds what {table.settings.policy} is worth, learned by {table.settings.algo}"
        hint = "name a run of algo=q_learning, or a player that the game has by name"
        raise SettingsError("players", f"{holds}, and no choice of actions", hint)
    model = load_model(table.settings)
    return TablePlayer(model.index, learned_policy(model.mdp, table.values))
