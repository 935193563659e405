#!/usr/bin/env bash
# PyTorch 2.13.0 on a CPU: the constructor of any optimizer loads the compiler, and switching the compiler off does not
# prevent it. The functional form of the same step loads nothing.
#
# Modules of torch._dynamo and sympy that a process has after `import torch`, a backward pass and:
#
#                                               torch._dynamo   sympy
#   gradients alone, or clipped                            no      no
#   torch.optim.SGD([w]), not even a step                 yes     yes
#   the same with TORCHDYNAMO_DISABLE=1                   yes     yes
#   the same with TORCH_COMPILE_DISABLE=1                 yes     yes
#   torch.optim.adam.adam(..., fused=True)                 no      no
#
# A good guess is that an eager script never loads the compiler, as nothing is compiled, or that the documented
# variables leave it out. But Optimizer.__init__ is wrapped to be ignored by the compiler, and the wrapper imports the
# compiler at the first call, before it looks at any variable. That is about 800 modules and, by machine, 1.4 to 2
# seconds of CPU, as much as `import torch` itself.
# Whoever starts many short processes that train (a sweep, workers, tests) pays it in each; so does a job that is
# preempted often. A step by the functions of torch.optim has the same arithmetic, bit for bit.
#
# Run it with Python 3.11 or newer and access to PyPI. It ends with 1 if the results differ from these.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check torch==2.13.0
cat >"$folder/step.py" <<'PYTHON'
import sys

import torch
from torch.optim.adam import adam

w = torch.ones(3, requires_grad=True)
(w**2).sum().backward()
what = sys.argv[1]
if what == "clip":
    torch.nn.utils.clip_grad_norm_([w], 1.0)
elif what == "sgd":
    torch.optim.SGD([w], lr=0.1)
elif what == "functional":
    state = [[torch.zeros(3)], [torch.zeros(3)], [], [torch.tensor(0.0)]]
    numbers = {"beta1": 0.9, "beta2": 0.999, "lr": 0.1, "weight_decay": 0.0, "eps": 1e-8}
    with torch.no_grad():
        adam([w], [w.grad], *state, fused=True, amsgrad=False, maximize=False, **numbers)
    v = torch.ones(3, requires_grad=True)
    v.grad = w.grad.clone()
    twin = torch.optim.Adam.__new__(torch.optim.Adam)  # no constructor yet
    loaded = "torch._dynamo" in sys.modules, "sympy" in sys.modules
    twin.__init__([v], lr=0.1, fused=True)
    twin.step()
    assert torch.equal(v, w), (v, w)
    print(*loaded)
    raise SystemExit
print("torch._dynamo" in sys.modules, "sympy" in sys.modules)
PYTHON
found=
for case in gradients clip sgd "TORCHDYNAMO_DISABLE=1 sgd" "TORCH_COMPILE_DISABLE=1 sgd" functional; do
    variable=
    [[ $case == *" "* ]] && variable=${case% *}
    line="$case: $(env ${variable:+"$variable"} "$folder/venv/bin/python" -W ignore "$folder/step.py" "${case##* }")"
    echo "$line"
    found+="$line;"
done
[[ $found == "gradients: False False;clip: False False;sgd: True True;TORCHDYNAMO_DISABLE=1 sgd: True True;\
TORCH_COMPILE_DISABLE=1 sgd: True True;functional: False False;" ]]
