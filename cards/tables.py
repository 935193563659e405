"""Table policies: players that look up numbered states, and table files, compact (`.npz`) or as text (`.json`)."""

import json
import zipfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from busso.base.errors import InputError
from busso.base.files import replacing
from busso.cards.compiled.jit import njit
from busso.cards.game import Game
from busso.cards.mdp import Numbering, Policy
from busso.cards.play import Actions, Decisions

_FORMAT = 1
_HEADERS = 1 << 16  # bytes for the names, types and shapes in a file
_WHERE_FROM = "busso train algo=batch_q_learning writes such files"


class PolicyFileError(InputError):
    """Unusable table file; the key is the file."""


def numbering_of(game: Game) -> Numbering:
    """Return the numbering of a game. Raises ValueError if it has none."""
    if game.numbering is None:
        raise InputError(game.name, "no numbered states, so its policies cannot be stored in tables")
    return game.numbering(game.options)


@cache
def _lookup_loop(number: Callable[[Any], int]) -> Callable[..., None]:
    @njit
    def look_up(states: Any, games: Any, table: Any, out: Any) -> None:
        for k in range(games.size):
            out[k] = table[number(states[games[k]])]

    return look_up


class TablePlayer:
    """Player of `policy[number(state)]`, with the compiled function that numbers the states."""

    def __init__(self, number: Callable[[Any], int], policy: NDArray[np.integer[Any]]) -> None:
        self._look_up = _lookup_loop(number)
        self._policy = policy

    def begin(self, seeds: NDArray[np.uint64]) -> None:
        """Do nothing: a table decides by the state alone."""

    def act(self, decisions: Decisions) -> Actions:
        actions = np.empty(decisions.games.size, np.uint8)
        self._look_up(decisions.states, decisions.games, self._policy, actions)
        return actions


def save_policy(path: Path, game: Game, policy: Policy) -> None:
    """Write the actions of the states listed under the game's options, as text if `path` ends with `.json`."""
    numbering = numbering_of(game)
    decisions = numbering.listed[:-1]
    with replacing(path) as temporary, temporary.open("wb") as file:
        if path.suffix == ".json":
            pairs = zip(decisions.tolist(), policy[decisions].tolist(), strict=True)
            entries = (f'"{numbering.text(number)}":{action}' for number, action in pairs)
            file.write(("{" + ",\n".join(entries) + "}\n").encode())
        else:
            name = np.array(game.name)
            # Gaps between consecutive numbers compress far better than the numbers.
            gaps = np.diff(decisions, prepend=0).astype(np.uint32)
            np.savez_compressed(file, format=_FORMAT, game=name, gaps=gaps, actions=policy[decisions])


def load_policy(path: Path, game: Game) -> Policy:
    """Return the actions `[states]` of a table file; unlisted states that it may omit get the initial action.

    Raises PolicyFileError naming the file, and the first missing state or one with an illegal action.
    """
    numbering = numbering_of(game)
    try:
        states, actions = _read_text(path, numbering) if path.suffix == ".json" else _read_compact(path, game)
    except OSError as error:
        raise PolicyFileError(path, f"cannot be read ({error.strerror})", _WHERE_FROM) from None
    _check_legal(path, numbering, states, actions)
    _check_complete(path, numbering, states)
    policy = numbering.initial.copy()
    policy[states] = actions
    return policy


def _read_text(path: Path, numbering: Numbering) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    try:
        entries = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise PolicyFileError(path, f"not JSON ({error})", _WHERE_FROM) from None
    if not isinstance(entries, dict):
        raise PolicyFileError(path, "not an object from state to action", _WHERE_FROM)
    states = np.empty(len(entries), np.int64)
    actions = np.empty(len(entries), np.int64)
    for row, (text, action) in enumerate(entries.items()):
        if not isinstance(action, int) or isinstance(action, bool) or not 0 <= action < 64:
            raise PolicyFileError(path, f"state {text}: {action!r} is not an action")
        try:
            states[row], actions[row] = numbering.parse(text), action
        except ValueError as error:
            raise PolicyFileError(path, error) from None
    return states, actions


def _read_compact(path: Path, game: Game) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    size = numbering_of(game).legal.size
    try:
        _check_size(path, size)
        with np.load(path, allow_pickle=False) as file:
            kind, name = int(file["format"]), str(file["game"])
            states, actions = np.cumsum(file["gaps"], dtype=np.int64), file["actions"].astype(np.int64)
    except (ValueError, KeyError, TypeError, EOFError, zipfile.BadZipFile) as error:
        raise PolicyFileError(path, f"not a policy table ({error})", _WHERE_FROM) from None
    if kind != _FORMAT or name != game.name:
        raise PolicyFileError(path, f"a table of {name} in format {kind}; expected {game.name} in format {_FORMAT}")
    if states.ndim != 1 or states.shape != actions.shape or ((states < 0) | (states >= size)).any():
        raise PolicyFileError(path, f"damaged: it contains states that {game.name} does not have")
    return states, actions


def _check_size(path: Path, states: int) -> None:
    """Raise ValueError for an archive that unpacks to more than two numbers per state."""
    with zipfile.ZipFile(path) as archive:
        if sum(each.file_size for each in archive.infolist()) > 16 * states + _HEADERS:
            raise ValueError(f"more than the {states:,} states of the game")


def _check_legal(path: Path, numbering: Numbering, states: NDArray[np.int64], actions: NDArray[np.int64]) -> None:
    fits = (actions >= 0) & (actions < 64)
    fits &= (numbering.legal[states] >> np.where(fits, actions, 0).astype(np.uint64)) & np.uint64(1) != 0
    if not fits.all():
        row = int(fits.argmin())
        mask = int(numbering.legal[states[row]])
        legal = ", ".join(str(action) for action in range(64) if mask >> action & 1)
        state = numbering.text(int(states[row]))
        raise PolicyFileError(path, f"state {state}: action {actions[row]} is not legal there", f"legal: {legal}")


def _check_complete(path: Path, numbering: Numbering, states: NDArray[np.int64]) -> None:
    """Raise PolicyFileError unless the file has all states of the shortest listing that contains its states."""
    held = np.zeros(numbering.legal.size, np.bool_)
    held[states] = True
    for listing in numbering.listings:
        outside = held.copy()
        outside[listing] = False
        missing = listing[:-1][~held[listing[:-1]]]
        if outside.any():
            continue
        if missing.size:
            first = numbering.text(int(missing[0]))
            raise PolicyFileError(path, f"{missing.size:,} states are missing, first {first}", _WHERE_FROM)
        return
