#!/usr/bin/env bash
# NumPy 2.4.6: spawn() of a generator that was jumped, or restored from its state, does not follow from its seed.
#
#   Generator(PCG64(1).jumped()).random()      0.338 at each start
#   Generator(PCG64(1).jumped()).spawn(1)      another child at each start
#   b.bit_generator.state = a.bit_generator.state      b goes on with a's numbers, but a.spawn(1) and b.spawn(1) differ
#
# A good guess is that everything after PCG64(1) follows from the seed, and that `state` is the whole state: NumPy's
# page on parallel generators names spawning and jumping as two of four strategies for "repeatable pseudo-random
# numbers". But spawn() asks the SeedSequence beside the state. jumped() makes a new bit generator without a seed and
# then sets its state, so that its SeedSequence comes from the operating system, and the dictionary `state` has
# neither the entropy nor the number of children so far: default_rng(1), restored after two children, spawns its first
# child again.
# Whoever gives workers jumped streams that spawn later, or saves generators in checkpoints by `state`, meets it.
# Nothing fails; only the second run differs. pickle keeps both.
#
# Run it with Python 3.11 or newer and access to PyPI. It ends with 1 if the results differ from these.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check numpy==2.4.6
"$folder/venv/bin/python" - <<'PYTHON'
import pickle

import numpy as np


def jumped():
    return np.random.Generator(np.random.PCG64(1).jumped())


def child(generator):
    return generator.spawn(1)[0].random()


own, children = [jumped().random() for _ in range(2)], [child(jumped()) for _ in range(2)]
print("jumped: own numbers", *own, "children", *children)
first, second, third = (child(each) for each in [np.random.default_rng(1)] * 3)
saved = np.random.default_rng(1)
saved.spawn(2)
restored = np.random.default_rng(1)
restored.bit_generator.state = saved.bit_generator.state
copied = pickle.loads(pickle.dumps(saved))
after = [child(restored), child(copied), child(saved)]
print("children 1 to 3 of default_rng(1)", first, second, third, "third after state, pickle, neither", *after)
raise SystemExit(own[0] != own[1] or children[0] == children[1] or after != [first, third, third])
PYTHON
