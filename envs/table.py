"""Single game that is dealt and stepped, shared by all environments of one game."""

import secrets
import zlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from busso.base.errors import InputError
from busso.cards.compiled.splitmix import derive
from busso.cards.game import Game, States
from busso.cards.hand import Hand
from busso.cards.own.players import player_from
from busso.cards.play import Decisions, Player
from busso.cards.presentation import presentation_of
from busso.envs.choosing import Reward, check_action, check_seed
from busso.envs.stepping import ILLEGAL, later_seed, steps

_PLAYER = 1  # salt of the generators for `ask`


class SteppedGame:
    """Game with the view and the legal actions of the seat to move in plain arrays.

    `observation` (`[bits]`) and `mask` (`[actions]`) are int8 of 0 and 1; `totals` (`[seats]`, float32) are the rewards
    of the last step. Every step overwrites them: copy them to keep them.
    """

    def __init__(self, game: Game, reward: Reward) -> None:
        self.game = game
        self._steps = steps(game.rules, reward)
        self.states: States = np.full(2, game.blank, game.dtype)  # the game, and a buffer for the previous state
        self._words = np.zeros((1, max(1, game.words)), np.uint64)
        self._observation = np.zeros((1, game.bits), np.int8)
        self._mask = np.zeros((1, game.actions), np.int8)
        self.observation: NDArray[np.int8]
        self.mask: NDArray[np.int8]
        self._hand_out()
        self.totals = np.zeros(game.seats, np.float32)
        self._first, self._games = -1, 0
        self.seed = -1  # of the current game; -1 before the first
        self._actions: list[int] = []

    def _hand_out(self) -> None:
        self.observation, self.mask = self._observation[0], self._mask[0]

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore a copy or pickle, in which NumPy has turned the views into separate arrays."""
        self.__dict__.update(state)
        self._hand_out()

    def deal(self, seed: int | None) -> int:
        """Deal the game of this seed, else the next one (the first at random); returns the result of `Steps.deal`."""
        if seed is not None or self._first < 0:
            self._first, self._games = secrets.randbits(64) if seed is None else check_seed(seed), 0
        self.seed = int(later_seed(np.uint64(self._first), np.uint64(self._games)))
        self._games += 1
        self._actions = []
        return self._steps.deal(
            self.states, np.uint64(self.seed), self._words, self._observation, self._mask, self.totals
        )

    def step(self, action: Any) -> int:
        """Apply an action of the seat to move; returns the result of `Steps.step`. Raises ValueError if illegal."""
        known = type(action) is int and 0 <= action < self.game.actions
        number = action if known else check_action(self.game, action)
        said = self._steps.step(self.states, number, self._words, self._observation, self._mask, self.totals)
        if said == ILLEGAL:
            self.game.check(self.states[:1], np.zeros(1, np.int64), np.array([number], np.uint8))  # raises
        self._actions.append(number)
        return said

    def _require_deal(self) -> None:
        if self.seed < 0:
            raise InputError(self.game.name, "no game has started", "call reset() first")

    def hand(self) -> Hand:
        """Return the game so far, move by move. Raises ValueError before the first deal."""
        self._require_deal()
        seeds = np.array([self.seed], np.uint64)
        hand = Hand(self.game, seeds, self.game.deal(seeds))
        for action in self._actions:
            hand.play(action)
        return hand

    def rendered(self, mode: str | None, seat: int | None = None) -> str | None:
        """Render the view of a seat, by default the one to move: "ansi" returns it, "human" prints it."""
        if mode is None:
            return None
        hand, game = self.hand(), self.game
        seat = int(hand.state["turn"][0]) if seat is None else seat
        lines = [game.name, *(f"{row.label}: {row.text}" for row in presentation_of(game).rows(hand, seat))]
        if hand.over:
            results = " ".join(f"{result:g}" for result in game.returns(hand.state)[0][game.occupied(hand.state)[0]])
            lines.append(f"over; {game.unit}: {results}")
        else:
            legal = ", ".join(f"{action} {game.action_text(action)}" for action in hand.legal)
            lines.append(f"player_{seat} may play: {legal}")
        text = "\n".join(lines)
        if mode == "ansi":
            return text
        print(text, flush=True)
        return None

    def see(self, seat: int) -> NDArray[np.int8]:
        """Return a seat's observation in a new array; `observation` stays unchanged."""
        seen = np.empty_like(self._observation)
        self._steps.see(self.states, seat, self._words, seen)
        return seen[0]

    def returns(self) -> NDArray[np.float32]:
        """Return each seat's result in the game's unit. Raises ValueError while the game is running."""
        if not self.game.over(self.states[:1])[0]:
            raise InputError(self.game.name, "the game is not over and has no result yet")
        return self.game.returns(self.states[:1])[0]

    def ask(self, player: Player) -> int:
        """Return a player's action for the seat to move. Raises ValueError before the first deal and after the end."""
        self._require_deal()
        if self.game.over(self.states[:1])[0]:
            raise InputError(self.game.name, "the game is over, no seat may play")
        # The same generator for the same decision, another for others. Derived from the observation, since the bytes of
        # a state include padding and hidden cards.
        player = player_from(self.game, player, "player")
        player.begin(derive(np.array([zlib.crc32(self.observation.tobytes()) ^ self.seed], np.uint64), _PLAYER))
        return self.chosen(player)

    def chosen(self, player: Player) -> int:
        """Return the action of a player, already begun, for the seat to move."""
        return int(player.act(Decisions(self.game, self.states[:1], np.zeros(1, np.int64)))[0])
