"""Gymnasium environment of one game at a time: one learner against players of busso."""

from operator import add
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from busso.cards.base.errors import InputError
from busso.cards.compiled.splitmix import derive
from busso.cards.own.files import game_with
from busso.cards.play import Player
from busso.envs.choosing import RENDER_MODES, check_action, check_render_mode, check_seed, reward_of
from busso.envs.stepping import EARNED, OVER, TURN
from busso.envs.table import SteppedGame
from busso.envs.vector import Learner, Others, players_of, seats_of_learner

Bits = NDArray[np.int8]


class SoloEnv(gymnasium.Env[Bits, np.int64]):
    """A game of one learner. Observations `[bits]` are those of its seat to move, int8 of 0 and 1.

    `action_masks()` and `info["action_mask"]` have the legal actions, `[actions]`. In games of several seats `learner`,
    `others`, rewards, `info["seat"]` and `info["rewards"]` are those of `SeatsVectorEnv`; `info["returns"]` comes with
    the end of a game. Arrays that are handed out are the caller's. `reset(seed=s)` is the game of seed s, and those
    after it follow from s.

    Gymnasium steps any action of the space. So the next legal one, counted upwards and on from 0, is played in place of
    an illegal one, and `info["played"]` names it. With `strict` an illegal action raises ValueError.

    A game that ends before the learner has a decision, such as a 21 on the deal in Blackjack, is over by the first
    step, whatever its action. So the game of a seed is the same here as anywhere, and mean rewards are what the game
    is worth.
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
        self._decided = False  # before a decision of the learner, and the step that says so is still to come
        self._seat = self.learner[0]  # of the learner: to move, or the last that was
        self._many = self.game.seats > 1
        self._nothing = [0.0] * self.game.seats
        self._earned = self._nothing  # by each seat since the last step
        self._said = 0  # by the last step of the table

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Bits, dict[str, Any]]:
        """Deal the game of this seed, or the next one; there are no `options`. Raises ValueError for a bad seed."""
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
        """Apply an action; raises ValueError for an illegal one, and where no game is on."""
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
        """The action itself once the game is over, which the table refuses."""
        legal = np.flatnonzero(self.table.mask)
        return int(legal[np.searchsorted(legal, action) % legal.size]) if legal.size else action

    def _others_play(self, said: int) -> None:
        """Until it is the learner's turn or the game is over. `said` is what the last step says."""
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
        mine = self._said & TURN == self._seat  # else the game is over, and another seat had the last move
        info: dict[str, Any] = {"action_mask": self.action_masks()}
        if self._many:
            info["seat"] = self._seat
        return self.table.observation.copy() if mine else self.table.see(self._seat), info

    def action_masks(self) -> Bits:
        """The legal actions, `[actions]`, int8 of 0 and 1; MaskablePPO of sb3-contrib asks for them by this name."""
        return np.ones(self.game.actions, np.int8) if self._decided else self.table.mask.copy()

    def ask(self, player: Player) -> int:
        """Return the action of a player of busso in this position."""
        return self.table.ask(player)

    def render(self) -> str | None:
        """Render the learner's observation as text: "ansi" returns it, "human" prints it; None without a mode."""
        return self.table.rendered(self.render_mode, self._seat)
