"""Games with several seats as PettingZoo AEC environments: agent `player_K` plays seat K."""

from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray
from pettingzoo import AECEnv

from busso.base.errors import InputError
from busso.cards.own.files import game_with
from busso.cards.play import Player
from busso.envs.choosing import RENDER_MODES, check_render_mode, reward_of
from busso.envs.stepping import EARNED, OVER, TURN
from busso.envs.table import SteppedGame

Observation = dict[str, NDArray[np.int8]]


class SeatsEnv(AECEnv):
    """AEC environment. `observe` and `last` give `{"observation": [bits], "action_mask": [actions]}`, int8 of 0 and 1.

    `infos` also has the mask, which is empty for agents not to move. Returned arrays are copies. `reward` names the
    game's reward, by default its first; `options` are the game's rules. `reset(seed=s)` deals the game of seed s; later
    games follow from s.

    `step` raises ValueError for an illegal action, naming the seat and the legal actions, and leaves the game
    unchanged; with `pettingzoo.utils.wrappers.TerminateIllegalWrapper` the agent loses instead.
    """

    def __init__(self, name: str, version: int, reward: str | None, render_mode: str | None, **options: Any) -> None:
        super().__init__()
        self.game = game_with(name, options)
        self.render_mode = check_render_mode(render_mode)
        self.metadata = {
            "name": f"{self.game.name}_v{version}",
            "render_modes": list(RENDER_MODES),
            "is_parallelizable": False,
            "render_fps": 2,
        }
        self.table = SteppedGame(self.game, reward_of(self.game, reward))
        self.possible_agents = [f"player_{seat}" for seat in range(self.game.seats)]
        self.agents: list[str] = []
        self._seat_of = {agent: seat for seat, agent in enumerate(self.possible_agents)}
        shapes = {"observation": self.game.bits, "action_mask": self.game.actions}
        self.observation_spaces = {
            agent: spaces.Dict({key: spaces.Box(0, 1, (size,), np.int8) for key, size in shapes.items()})
            for agent in self.possible_agents
        }
        self._seated = 0  # seats taken in the current game
        self.state_space = spaces.Box(0, 1, (self.game.seats * self.game.bits,), np.int8)
        self.action_spaces = {agent: spaces.Discrete(self.game.actions) for agent in self.possible_agents}

    def __getattr__(self, name: str) -> Any:
        if name in ("agent_selection", "rewards", "terminations", "truncations", "infos", "_cumulative_rewards"):
            raise AttributeError(f"{name} is not available before the first reset()")
        raise AttributeError(f"{type(self).__name__} has no {name}")

    def observation_space(self, agent: str) -> spaces.Dict:
        """Return the same object at every call, as PettingZoo requires."""
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> spaces.Discrete:
        """Return the same object at every call."""
        return self.action_spaces[agent]

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> None:
        """Deal the game of this seed, or the next one; `options` is ignored. Raises ValueError for a bad seed."""
        said = self.table.deal(seed)
        self._seated = int(self.game.occupied(self.table.states[:1])[0].sum())
        self.agents = self.possible_agents[: self._seated]
        self._cumulative_rewards = dict.fromkeys(self.agents, 0.0)
        self.terminations = dict.fromkeys(self.agents, False)
        self.truncations = dict.fromkeys(self.agents, False)
        self.infos = {agent: self._no_action() for agent in self.agents}
        self.rewards = dict.fromkeys(self.agents, 0.0)
        self._skip_agent_selection = None
        self._go_on(said)

    def step(self, action: int | None) -> None:
        """Apply an action of `agent_selection`; None for an agent whose game is over, as PettingZoo requires."""
        if not self.agents:
            raise InputError(self.game.name, "no game has started", "call reset() first")
        agent = self.agent_selection
        if self.terminations[agent]:
            self._was_dead_step(action)
            return
        said = self.table.step(action)
        self._cumulative_rewards[agent] = 0.0
        self.infos[agent] = self._no_action()
        if self._earned:
            self.rewards = dict.fromkeys(self.agents, 0.0)
        self._go_on(said)
        if self.render_mode == "human":
            self.render()

    def _go_on(self, said: int) -> None:
        self._earned = said & EARNED
        if said & EARNED:
            for seat, agent in enumerate(self.agents):
                self.rewards[agent] = earned = float(self.table.totals[seat])
                self._cumulative_rewards[agent] += earned
        agent = self.agent_selection = self.possible_agents[said & TURN]
        if said & OVER:
            self.terminations = dict.fromkeys(self.agents, True)
            self._deads_step_first()
        else:
            self.infos[agent] = {"action_mask": self.table.mask.copy()}

    def _no_action(self) -> Observation:
        return {"action_mask": np.zeros(self.game.actions, np.int8)}

    def observe(self, agent: str) -> Observation:
        """Return an agent's observation, and its legal actions if it is to move."""
        table = self.table
        if agent == self.agent_selection and not self.terminations.get(agent, True):
            return {"observation": table.observation.copy(), "action_mask": table.mask.copy()}
        return {"observation": table.see(self._seat_of[agent]), "action_mask": np.zeros(self.game.actions, np.int8)}

    def action_masks(self) -> NDArray[np.int8]:
        """Return the legal actions of the agent to move, `[actions]`; none once the game is over."""
        return self.table.mask.copy()

    def state(self) -> NDArray[np.int8]:
        """Return all agents' observations in a row, `[possible agents * bits]`; 0 for agents not in the game.

        It includes all hands, for centralized critics. Raises ValueError before the first game.
        """
        if not self._seated:
            raise InputError(self.game.name, "no game has started", "call reset() first")
        seen = np.zeros((self.game.seats, self.game.bits), np.int8)
        for seat in range(self._seated):
            seen[seat] = self.table.see(seat)
        return seen.ravel()

    def ask(self, player: Player) -> int:
        """Return the action of a busso player (rule player, network, search) for the agent to move."""
        return self.table.ask(player)

    def render(self) -> str | None:
        """Render the view of the agent to move as text: "ansi" returns it, "human" prints it; None without a mode."""
        return self.table.rendered(self.render_mode)

    def close(self) -> None:
        """Do nothing: there is nothing to close."""
