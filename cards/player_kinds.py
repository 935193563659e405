"""Players of a game that need no file, with their kinds and options. Nothing here is compiled."""

from typing import Any

from busso.cards.base.errors import InputError
from busso.cards.game import Game, PlayerKind
from busso.cards.player_specs import PlayerSpec, options_of, read_options

RULE = PlayerKind(searches=False)  # `random` and the policies of a game


def player_names(game: Game) -> list[str]:
    """Return the players of a game that need no file: `random`, its policies and its kinds."""
    return ["random", *game.policies, *(name for name, kind in game.kinds.items() if not kind.of_network)]


def kind_and_options(game: Game, spec: PlayerSpec, others: str = "") -> tuple[PlayerKind, Any]:
    """Return the kind and the options (None for policies) of a player that needs no file.

    Raises InputError for an unknown player, with a hint that ends with `others`, and for bad options.
    """
    if spec.who not in player_names(game):
        raise InputError(
            spec.who, f"unknown player of {game.name}", f"available: {', '.join(player_names(game))}{others}"
        )
    kind = game.kinds.get(spec.who, RULE)
    if spec.of is not None:
        raise InputError(spec, f"{spec.of!r} is not key:value", options_of(spec.who, kind.options))
    return kind, read_options(kind.options, spec)
