"""Gymnasium environment of single games: one learner against players of busso."""

from operator import add
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from busso.base.errors import InputError
from busso.cards.compiled.splitmix import derive
from busso.cards.own.files import game_with
from busso.cards.play import Player
from busso.envs.choosing import RENDER_MODES, check_action, check_render_mode, check_seed, reward_of
from busso.envs.stepping import EARNED, OVER, TURN
from busso.envs.table import SteppedGame
from busso.envs.vector import Learner, Others, players_of, seats_of_learner

Bits = NDArray[np.int8]


class SoloEnv(gymnasium.Env[Bits, np.int64]):
    """Single game with one learner. Observations `[bits]`, int8 of 0 and 1, are those of its seat to move.

    `action_masks()` and `info["action_mask"]` are the legal actions, `[actions]`. In games with several seats,
    `learner`, `others`, rewards, `info["seat"]` and `info["rewards"]` are as in `SeatsVectorEnv`; `info["returns"]` is
    set at the end of a game. Returned arrays are copies. `reset(seed=s)` deals the game of seed s; later games follow
    from s.

    Since Gymnasium steps any action of the space, an illegal action is replaced by the next higher legal one (wrapping
    around to 0), reported in `info["played"]`. With `strict` an illegal action raises ValueError.

    A game that ends before the learner's first decision, such as a 21 on the deal in Blackjack, ends with the first
    step, whatever its action. Thus seeds give the same games as elsewhere, and mean rewards are unbiased.
    """

    metadata: dict[str, Any] = {"render_modes": list(RENDER_MODES), "render_fps": 2}  # noqa: RUF012

    def __init__(
        self,
        game: str,
        reward: str | None = None,
        render_mode: str | None = None,
        learner: Learner = None,
        others: Others = "random",
        strict: bool = False,
        **options: Any,
    ) -> None:
        self.game = game_with(game, options)
        self.learner = seats_of_learner(self.game, learner)
        self._players, self._seating = players_of(self.game, others, self.learner)
        self.strict = strict
        self.render_mode = check_render_mode(render_mode)
        self.table = SteppedGame(self.game, reward_of(self.game, reward))
        self.observation_space = spaces.Box(0, 1, (self.game.bits,), np.int8)
        self.action_space = spaces.Discrete(self.game.actions)
        self._dealt = False
        self._decided = False  # over before the learner's first decision, and not yet reported by a step
        self._seat = self.learner[0]  # the learner's seat that is to move, or moved last
        self._many = self.game.seats > 1
        self._nothing = [0.0] * self.game.seats
        self._earned = self._nothing  # rewards by seat since the last step
        self._said = 0  # result of the table's last step

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Bits, dict[str, Any]]:
        """Deal the game of this seed, or the next one; `options` is ignored. Raises ValueError for a bad seed."""
        super().reset(seed=None if seed is None else check_seed(seed))
        if seed is None and not self._dealt:
            seed = int(self.np_random.integers(2**63))
        if seed is not None:
            for index, player in enumerate(self._players):
                player.begin(derive(np.array([seed], np.uint64), index))
        self._dealt = True
        self._seat = self.learner[0]
        self._earned = self._nothing
        self._others_play(self.table.deal(seed))
        self._decided = bool(self._said & OVER)
        if self.render_mode == "human":
            self.render()
        return self._seen()

    def step(self, action: Any) -> tuple[Bits, float, bool, bool, dict[str, Any]]:
        """Apply an action. Raises ValueError if it is illegal or no game has started."""
        if not self._dealt:
            raise InputError(self.game.name, "no game has started", "call reset() first")
        played = number = check_action(self.game, action)
        if self._decided:
            self._decided = False
        else:
            if not (self.table.mask[number] or self.strict):
                played = self._next_legal(number)
            self._others_play(self.table.step(played))
        if self.render_mode == "human":
            self.render()
        seen, info = self._seen()
        over = bool(self._said & OVER)
        earned, self._earned = self._earned, self._nothing
        if self._many:
            info["rewards"] = np.array(earned, np.float32)
        if over:
            info["returns"] = self.table.returns()
        if played != number:
            info["played"] = played
        reward = 0.0 if earned is self._nothing else sum([earned[seat] for seat in self.learner]) / len(self.learner)
        return seen, reward, over, False, info

    def _next_legal(self, action: int) -> int:
        """Return the next legal action, or the action itself once the game is over: the table rejects it."""
        legal = np.flatnonzero(self.table.mask)
        return int(legal[np.searchsorted(legal, action) % legal.size]) if legal.size else action

    def _others_play(self, said: int) -> None:
        """Play until it is the learner's turn or the game is over. `said` is the result of the last step."""
        while True:
            if said & EARNED:
                self._earned = list(map(add, self._earned, self.table.totals.tolist()))
            if said & OVER or said & TURN in self.learner:
                break
            said = self.table.step(self.table.chosen(self._players[self._seating[said & TURN]]))
        if not said & OVER:
            self._seat = said & TURN
        self._said = said

    def _seen(self) -> tuple[Bits, dict[str, Any]]:
        mine = self._said & TURN == self._seat  # else the game is over, and another seat moved last
        info: dict[str, Any] = {"action_mask": self.action_masks()}
        if self._many:
            info["seat"] = self._seat
        return self.table.observation.copy() if mine else self.table.see(self._seat), info

    def action_masks(self) -> Bits:
        """Return the legal actions, `[actions]`, int8 of 0 and 1; the name is that expected by sb3-contrib."""
        return np.ones(self.game.actions, np.int8) if self._decided else self.table.mask.copy()

    def ask(self, player: Player) -> int:
        """Return the action of a busso player in this position."""
        return self.table.ask(player)

    def render(self) -> str | None:
        """Render the learner's view as text: "ansi" returns it, "human" prints it; None without a mode."""
        return self.table.rendered(self.render_mode, self._seat)
