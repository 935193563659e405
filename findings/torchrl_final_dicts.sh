#!/usr/bin/env bash
# TorchRL 0.14.1 (and 0.14.0), Gymnasium 1.4.0: a batch of dict observations fails at the first end of a game, with the
# words "generator raised StopIteration".
#
# GymWrapper on Gymnasium's SyncVectorEnv, 20 random steps in 3 environments of 5 steps each:
#
#   observations   autoreset_mode   result
#   Box            SAME_STEP        3 x 20 steps, 12 ends
#   Dict           SAME_STEP        RuntimeError: generator raised StopIteration, in the fifth step
#   Dict           DISABLED         3 x 20 steps, 12 ends
#
# A good guess is that all three work: the wrapper refuses the one mode that it does not know (NEXT_STEP), takes this
# one, and has code for final observations that are dicts. It makes one TensorDict without a batch size of them and then
# iterates over it. Four steps of trial, or a rollout that ends before the game, show nothing; the error names neither
# the observation nor the mode. Whoever has masks of legal actions beside the observation meets it: use DISABLED.
#
# Run it with Python 3.11 or newer and access to PyPI. It ends with 1 if the results differ from these.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check torch==2.13.0
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check torch==2.13.0 torchrl==0.14.1 gymnasium==1.4.0
"$folder/venv/bin/python" -W ignore - <<'PYTHON'
import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from torchrl.envs import GymWrapper


class Dicts(gymnasium.Env):
    """Game of five steps."""

    observation_space = spaces.Dict({"observation": spaces.Box(0, 9, (3,)), "action_mask": spaces.Box(0, 1, (2,))})
    action_space = spaces.Discrete(2)

    def seen(self):
        return {"observation": np.full(3, self.steps, np.float32), "action_mask": np.ones(2, np.float32)}

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.steps = 0
        return self.seen(), {}

    def step(self, action):
        self.steps += 1
        return self.seen(), 1.0, self.steps == 5, False, {}


class Boxes(Dicts):
    """The same with one array."""

    observation_space = Dicts.observation_space["observation"]

    def seen(self):
        return super().seen()["observation"]


def result(kind, mode, steps):
    """Return the number of ends in a rollout, or its error."""
    try:
        env = GymWrapper(SyncVectorEnv([kind] * 3, autoreset_mode=mode))
        return env.rollout(steps, break_when_any_done=False)["next", "done"].sum().item()
    except RuntimeError as error:
        return str(error)


same, disabled = AutoresetMode.SAME_STEP, AutoresetMode.DISABLED
cases = [(Boxes, same, 20), (Dicts, same, 4), (Dicts, same, 20), (Dicts, disabled, 20)]
found = [result(*case) for case in cases]
for (kind, mode, steps), each in zip(cases, found, strict=True):
    print(f"{kind.__name__:5} {mode.name:9} {steps:2} steps: {each}")
raise SystemExit(found != [12, 0, "generator raised StopIteration", 12])
PYTHON
