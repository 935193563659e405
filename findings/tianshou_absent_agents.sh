#!/usr/bin/env bash
# Tianshou 2.0.1: PettingZooEnv pays an agent that does not take part in a game what it earned in an earlier one.
#
# Three possible agents; `reset` seats all three in the first game and two in the second, as PettingZoo allows. Each
# game pays -7 to player_0 and +7 to the last agent at its end.
#
#   game 1, three agents   PettingZoo {player_0: -7, player_1: 0, player_2: 7}   Tianshou [-7, 0, 7]
#   game 2, two agents     PettingZoo {player_0: -7, player_1: 7}                Tianshou [0, 0, 7] [-7, 7, 7]
#
# A good guess is 0 for who is absent, or an error. The wrapper fills a list that it makes once and never clears, so the
# absent agent has +7 in every step of the second game, and a return that grows with the length of a game that it does
# not play. The list is also the same object in each step, so that one who keeps it sees it change. Whoever trains with
# an environment whose number of agents differs from game to game meets it: fix the number of agents.
#
# Run it with Python 3.11 or newer and access to PyPI. It ends with 1 if the rewards differ from these.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check torch==2.13.0
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check torch==2.13.0 tianshou==2.0.1 pettingzoo==1.27.0 gymnasium==1.4.0
"$folder/venv/bin/python" -W ignore - <<'PYTHON'
import numpy as np
from gymnasium import spaces
from pettingzoo import AECEnv
from tianshou.env import PettingZooEnv


class Seats(AECEnv):
    """Game in which each agent acts once."""

    metadata = {"name": "seats"}
    possible_agents = ["player_0", "player_1", "player_2"]

    def __init__(self):
        super().__init__()
        self.games = -1  # the wrapper resets once when it is made

    def observation_space(self, agent):
        return spaces.Box(0, 1, (1,))

    def action_space(self, agent):
        return spaces.Discrete(2)

    def reset(self, seed=None, options=None):
        self.games += 1
        self.agents = self.possible_agents[: 2 if self.games == 2 else 3]
        self.rewards = dict.fromkeys(self.agents, 0)
        self._cumulative_rewards = dict.fromkeys(self.agents, 0)
        self.terminations = dict.fromkeys(self.agents, False)
        self.truncations = dict.fromkeys(self.agents, False)
        self.infos = {agent: {} for agent in self.agents}
        self.agent_selection = self.agents[0]

    def observe(self, agent):
        return np.zeros(1, np.float32)

    def step(self, action):
        self.rewards = dict.fromkeys(self.agents, 0)
        number = self.agents.index(self.agent_selection)
        if number + 1 < len(self.agents):
            self.agent_selection = self.agents[number + 1]
            return
        self.rewards[self.agents[0]], self.rewards[self.agents[-1]] = -7, 7
        self.terminations = dict.fromkeys(self.agents, True)


game = Seats()
env = PettingZooEnv(game)
seen = {}
for number in (1, 2):
    env.reset()
    seen[number] = []
    for _ in game.agents:
        _, rewards, *_ = env.step(0)
        seen[number].append(list(rewards))
    print(f"game {number}: PettingZoo {game.rewards}, Tianshou {seen[number]}")
raise SystemExit(seen != {1: [[0, 0, 0], [0, 0, 0], [-7, 0, 7]], 2: [[0, 0, 7], [-7, 7, 7]]})
PYTHON
