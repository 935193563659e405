"""Games of one player by Gymnasium's interface: Blackjack and Sette e mezzo."""

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from busso.cards.base.errors import InputError
from busso.cards.game import game_with
from busso.cards.play import Player
from busso.envs.choosing import RENDER_MODES, check_action, check_render_mode, check_seed, reward_of
from busso.envs.stepping import OVER
from busso.envs.table import SteppedGame

Bits = NDArray[np.int8]


class SoloEnv(gymnasium.Env[Bits, np.int64]):
    """A game of one seat. Observations are int8 of 0 and 1, `[bits]`; `info["action_mask"]` is `[actions]`.

    Arrays that are handed out are the caller's. `reset(seed=s)` is the game of seed s, and those after it follow from
    s. A game that the deal decides, such as a 21 on the deal in Blackjack, is over by the first step, whatever its
    action: so the game of a seed is the same here as anywhere, and mean rewards are what the game is worth.
    """

    metadata: dict[str, Any] = {"render_modes": list(RENDER_MODES), "render_fps": 2}  # noqa: RUF012

    def __init__(self, game: str, reward: str | None = None, render_mode: str | None = None, **options: Any) -> None:
        self.game = game_with(game, options)
        if self.game.seats != 1:
            raise InputError("game", f"{game} has {self.game.seats} seats", f"envs.{game}_v0 is for PettingZoo")
        self.render_mode = check_render_mode(render_mode)
        self.table = SteppedGame(self.game, reward_of(self.game, reward))
        self.observation_space = spaces.Box(0, 1, (self.game.bits,), np.int8)
        self.action_space = spaces.Discrete(self.game.actions)
        self._dealt = False
        self._decided = False  # by the deal, and the step that says so is still to come

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Bits, dict[str, Any]]:
        """Deal the game of this seed, or the next one; there are no `options`. Raises ValueError for a bad seed."""
        super().reset(seed=None if seed is None else check_seed(seed))
        if seed is None and not self._dealt:
            seed = int(self.np_random.integers(2**63))
        self._decided = bool(self.table.deal(seed) & OVER)
        self._dealt = True
        self._show()
        return self._seen()

    def step(self, action: Any) -> tuple[Bits, float, bool, bool, dict[str, Any]]:
        """One action; raises ValueError for one that there is not, and where no game is on."""
        if not self._dealt:
            raise InputError(self.game.name, "no game has started", "reset() deals one")
        over = self._decided
        if over:
            self._decided = False
            check_action(self.game, action)
        else:
            over = bool(self.table.step(action) & OVER)
        self._show()
        seen, info = self._seen()
        return seen, float(self.table.totals[0]), over, False, info

    def _seen(self) -> tuple[Bits, dict[str, Any]]:
        mask = np.ones(self.game.actions, np.int8) if self._decided else self.table.mask.copy()
        return self.table.observation.copy(), {"action_mask": mask}

    def _show(self) -> None:
        if self.render_mode == "human":
            self.render()

    def ask(self, player: Player) -> int:
        """What a player of busso would do here."""
        return self.table.ask(player)

    def render(self) -> str | None:
        """The game as text: "ansi" returns it, "human" prints it; None without a mode."""
        return self.table.rendered(self.render_mode)
