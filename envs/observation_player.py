"""Players of busso that decide from an environment's observations, as any external agent does."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from busso.base.errors import InputError
from busso.cards.compiled.bits import words_for
from busso.cards.game import Game
from busso.cards.own.players import name_of, player_from
from busso.cards.play import Decisions, Player
from busso.cards.players import needs_states
from busso.cards.tables import TablePlayer


def pack(bits: NDArray[Any], width: int) -> NDArray[np.uint64]:
    """Pack rows of 0 and 1, `[n, bits]`, into 64-bit words `[n, width]`: the inverse of `bits.unpack`."""
    octets = np.zeros((len(bits), 8 * width), np.uint8)
    packed = np.packbits(bits.astype(np.uint8), axis=1, bitorder="little")
    octets[:, : packed.shape[1]] = packed
    return octets.view("<u8").astype(np.uint64)


class ObservationPlayer:
    """Player that decides by observations only (a network or champion), in the seats of `games` environments.

    Rule players and search need the game's state: use `SeatsEnv.ask` or `SoloEnv.ask`, or `others` of a vector
    environment. Raises ValueError for a rule player, a search or a table; so does `act` for another number of games.
    """

    def __init__(self, game: Game, player: Player, games: int = 1, seed: int = 0) -> None:
        self._game = game
        self._player = player_from(game, player, "player")
        if isinstance(player, TablePlayer) or needs_states(self._player):
            raise InputError("player", f"{name_of(player)} needs the game's state", "query it with env.ask")
        self._games = games
        self._none = np.zeros(0, game.dtype)
        self._player.begin(np.arange(seed, seed + games, dtype=np.uint64))

    def act(self, seen: Mapping[str, NDArray[Any]]) -> NDArray[np.int64]:
        """Return actions `[games]` for observations and masks `[games, ...]`; each mask must have a legal action."""
        game = self._game
        legal = pack(seen["action_mask"], 1)[:, 0]
        if len(legal) != self._games:
            raise InputError(
                "games",
                f"expected decisions of {self._games} games, not {len(legal)}",
                "pass ObservationPlayer(..., games=...)",
            )
        decisions = Decisions(game, self._none, np.arange(len(legal)), legal)
        decisions.observation = pack(seen["observation"], words_for(game.bits))
        actions = self._player.act(decisions)
        return actions.astype(np.int64)

    def act_one(self, seen: Mapping[str, NDArray[Any]]) -> int:
        """Return the action for one observation and mask, as returned by PettingZoo's `observe` and `last`."""
        return int(self.act({key: value[None] for key, value in seen.items()})[0])
