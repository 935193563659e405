#!/usr/bin/env bash
# PyTorch 2.13.0: the log-probability of an action that has probability 0 is finite, and depends on the number format.
#
#   Categorical(probs=[1, 0]).log_prob(1)        -15.94 in float32, -36.04 in float64, -4.84 in bfloat16
#   Categorical(logits=[0, -inf]).log_prob(1)    -inf
#   kl_divergence(Categorical([0.5, 0.5]), Categorical([1, 0]))    inf, where -15.94 would give 7.28
#
# A good guess is -inf for all log-probabilities: the action is never drawn, `probs` shows 0, and both parameters name
# the same distribution. But log_prob takes the logarithm of probabilities clamped to [eps, 1 - eps] of their type
# (clamp_probs in torch/distributions/utils.py), while kl_divergence looks at `probs` and corrects it. A mask that
# multiplies probabilities by 0 thus gives another loss than one that sets logits to -inf: PPO's ratio for an action
# that the old policy could not choose is a number such as 4e6 in place of inf, cross entropies with published
# policies are finite and change with the type, and a fault that would show as inf or NaN stays hidden.
# Whoever masks illegal actions, or scores a policy by the log-probability of moves that it never plays, meets it:
# mask logits.
#
# Run it with Python 3.11 or newer and access to PyPI. It ends with 1 if the results differ from these.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check torch==2.13.0
"$folder/venv/bin/python" -W ignore - <<'PYTHON'
import math

import torch
from torch.distributions import Categorical, kl_divergence

illegal = torch.tensor(1)
formats = torch.float32, torch.float64, torch.bfloat16
masked = [Categorical(probs=torch.tensor([1.0, 0.0], dtype=each)) for each in formats]
found = [round(each.log_prob(illegal).item(), 2) for each in masked]
by_logits = Categorical(logits=torch.tensor([0.0, -math.inf])).log_prob(illegal).item()
divergence = kl_divergence(Categorical(probs=torch.tensor([0.5, 0.5])), masked[0]).item()
drawn = int(masked[0].sample((10_000,)).sum())
print("by probabilities:", *found, "by logits:", by_logits, "divergence:", divergence, "drawn:", drawn)
raise SystemExit(found != [-15.94, -36.04, -4.84] or by_logits != -math.inf or divergence != math.inf or drawn != 0)
PYTHON
