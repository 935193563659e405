#!/usr/bin/env bash
# PyTorch 2.13.0: under autocast a target network that has taken over new weights still answers with the old ones.
#
#   with torch.autocast("cpu", dtype=torch.bfloat16), torch.no_grad():
#       target(x)                                        1.0, the weight of the target
#       target.load_state_dict(online.state_dict())      the weight is 3.0 now
#       target(x)                                        1.0 again; 3.0 after the block
#
# The same happens to the online network after optimizer.step(): a loop inside one autocast block reports the same
# loss in each step, while the weights move on. A good guess is 3.0: load_state_dict and optimizers write in place,
# and tensors count their versions. But the casts of float32 leaves that require a gradient are kept by the address of
# the tensor until the outermost autocast block ends, whatever is written to it (cached_cast in
# aten/src/ATen/autocast_mode.cpp). The documentation advises to leave the block before backward(), and says of
# `cache_enabled` only "whether the weight cache inside autocast should be enabled". With target.requires_grad_(False)
# the answer is 3.0: two programs that differ in this line alone train differently.
# Whoever keeps one autocast block around rollouts, target updates or averages of weights meets it: leave the block,
# pass cache_enabled=False, or call torch.clear_autocast_cache().
#
# Run it with Python 3.11 or newer and access to PyPI. It ends with 1 if the results differ from these.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check torch==2.13.0
"$folder/venv/bin/python" -W ignore - <<'PYTHON'
import torch

x = torch.ones(1, 1)
online, target = torch.nn.Linear(1, 1, bias=False), torch.nn.Linear(1, 1, bias=False)


def before_and_after(trained, cached):
    with torch.no_grad():
        online.weight.fill_(3)
        target.weight.fill_(1)
    target.requires_grad_(trained)
    with torch.autocast("cpu", dtype=torch.bfloat16, cache_enabled=cached), torch.no_grad():
        before = target(x).item()
        target.load_state_dict(online.state_dict())
        return before, target(x).item()


def losses():
    online.weight.data.fill_(3)
    optimizer, found = torch.optim.SGD(online.parameters(), 0.25), []
    with torch.autocast("cpu", dtype=torch.bfloat16):
        for _ in range(3):
            loss = (online(x) - 1).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            found.append(loss.item())
    return found, online.weight.item()


found = before_and_after(True, True), before_and_after(False, True), before_and_after(True, False)
print("target before and after: with gradient", found[0], "without", found[1], "without cache", found[2])
in_one_block = losses()
print("losses and weight of a loop:", *in_one_block)
raise SystemExit(found != ((1, 1), (1, 3), (1, 3)) or in_one_block != ([4, 4, 4], 0))
PYTHON
