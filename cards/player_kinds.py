"""The players of a game that need no file, with their kinds and options. Nothing here is compiled."""

from __future__ import annotations

import shlex
import shutil
from dataclasses import dataclass
from typing import Any

from busso.cards.base.bounds import bounded, check_bounds
from busso.cards.base.errors import InputError
from busso.cards.game import Game, PlayerKind
from busso.cards.player_specs import PROCESS, PlayerSpec, read_options

RULE = PlayerKind(searches=False)  # `random` and the policies of a game
OF_PROCESS = PlayerKind()  # a program of its own, which plays any game


@dataclass(frozen=True)
class _ProcessOptions:
    """Options of a player in a program of its own: how long it may be silent while it owes answers."""

    seconds: float = bounded(5.0, 0.0, 86_400.0, above=True)

    def __post_init__(self) -> None:
        check_bounds("", self)


@dataclass(frozen=True)
class ProcessCommand:
    """The program of a player and its arguments, and for how many seconds it may be silent while it owes answers."""

    command: tuple[str, ...]
    seconds: float


def process_command(spec: PlayerSpec) -> ProcessCommand:
    """The command of `process:COMMAND:seconds:5`, divided as a shell would. Raises InputError, one line."""
    try:
        command = tuple(shlex.split(spec.argument or ""))
    except ValueError as error:
        raise InputError(spec, error) from None
    if not command:
        raise InputError(spec, f"{PROCESS} needs a command", f"write '{PROCESS}:python bot.py'")
    if shutil.which(command[0]) is None:
        raise InputError(spec, f"there is no program {command[0]!r}", "name one on PATH, or by its path")
    return ProcessCommand(command, read_options(_ProcessOptions, spec).seconds)


def player_names(game: Game) -> list[str]:
    """The players of a game that need no file: `random`, its policies and its kinds."""
    return ["random", *game.policies, *(name for name, kind in game.kinds.items() if not kind.of_network)]


def kind_and_options(game: Game, spec: PlayerSpec, others: str = "") -> tuple[PlayerKind, Any]:
    """The kind of a player that needs no file, and its options: None for `random` and policies, which have none.

    Raises InputError, one line, for a player that the game does not have and options that it does not take; `others`
    are then proposed beside the names.
    """
    if spec.name == PROCESS:
        raise InputError(spec, "a program plays only in tournaments, records and at the table")
    if spec.argument is not None or spec.name not in player_names(game):
        name = spec.name if spec.argument is None else str(spec)
        raise InputError(name, f"{game.name} has no such player", f"it has {', '.join(player_names(game))}{others}")
    kind = game.kinds.get(spec.name, RULE)
    return kind, read_options(kind.options, spec)
