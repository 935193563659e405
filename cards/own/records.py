"""Default records of a game: options, seed, actions and returns."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, fields
from typing import Any

import numpy as np

from busso.cards.base.errors import InputError
from busso.cards.game import Game
from busso.cards.hand import NO_SEEDS, Hand, Replayed
from busso.cards.records import field, integer, list_of

SEED = "seed"  # field of the state
_MOST_ACTIONS = 100_000
_CLOSE = 1e-3  # tolerance of results, which are float32


def recorder(game: Callable[[], Game], options: Any) -> Callable[[np.void, list[int]], dict[str, Any]]:
    """Return the `record` of a game under these options: `{"game", "options", "seed", "actions", "returns"}`.

    Options at their defaults are left out, as are the returns of a game that has not ended.
    """

    def record(start: np.void, actions: list[int]) -> dict[str, Any]:
        made = game()
        chosen = {known.name: getattr(options, known.name) for known in fields(options)}
        changed = {name: value for name, value in chosen.items() if value != getattr(made.options, name)}
        found = {"game": made.name, **({"options": changed} if changed else {}), "seed": int(start[SEED])}
        played = _played(made.configure(asdict(options)), int(start[SEED]), actions)
        found["actions"] = [made.action_text(action) for action in actions]
        return found | ({"returns": played.returns()} if played.over else {})

    return record


def reader(game: Callable[[], Game]) -> Callable[[dict[str, Any]], Replayed]:
    """Return the `read` for these records.

    It raises InputError that names a bad field, an action that breaks a rule, or returns that differ from those of the
    replayed game, as after a change of the rules.
    """

    def read(record: dict[str, Any]) -> Replayed:
        made = _configured(game(), record.get("options", {}))
        texts = list_of(field(record, "actions"), "actions", None)
        if len(texts) > _MOST_ACTIONS:
            raise InputError("actions", f"more than {_MOST_ACTIONS:,}")
        names = {made.action_text(action): action for action in range(made.actions)}
        actions = []
        for number, text in enumerate(texts, start=1):
            if not isinstance(text, str) or text not in names:
                raise InputError(f"action {number}", f"unknown action {text!r} of {made.name}")
            actions.append(names[text])
        hand = _played(made, integer(record, SEED, 0, 2**64 - 1), actions)
        if not hand.over:
            raise InputError("actions", f"the game is not over after {len(actions)}")
        _check_returns(record.get("returns"), hand.returns())
        return Replayed([hand], {"returns": hand.returns()})

    return read


def _played(game: Game, seed: int, actions: list[int]) -> Hand:
    hand = Hand(game, NO_SEEDS, game.deal(np.array([seed], np.uint64)))
    for number, action in enumerate(actions, start=1):
        if not hand.may(action):
            legal = " ".join(map(game.action_text, hand.legal))
            problem = f"seat {hand.turn} may not play {game.action_text(action)}; legal: {legal}"
            raise InputError(f"action {number}", "the game is over" if hand.over else problem)
        hand.play(action)
    return hand


def _configured(game: Game, options: object) -> Game:
    if not isinstance(options, Mapping):
        raise InputError("options", f"not an object: {options!r}")
    try:
        return game.configure(options)
    except (ValueError, TypeError) as error:
        raise InputError("options", error) from None


def _check_returns(recorded: object, found: list[float]) -> None:
    """Raise InputError for recorded returns that differ from those of the replayed game."""
    if recorded is None:
        return
    numbers = list_of(recorded, "returns", len(found))
    if not all(isinstance(each, int | float) and not isinstance(each, bool) for each in numbers):
        raise InputError("returns", f"expected numbers only, not {numbers!r}")
    if not np.allclose(numbers, found, atol=_CLOSE):
        raise InputError(
            "returns", f"the record has {numbers}, the replayed game {found}", "its rules have changed since"
        )
