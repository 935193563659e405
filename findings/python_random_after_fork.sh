#!/usr/bin/env bash
# CPython 3.11: forked workers do not inherit the seed of `random`, although they inherit that of NumPy.
#
# After random.seed(1), own = random.Random(1) and np.random.seed(1), the first draws of four forked workers are
#
#   random.random()      four different numbers, and four others at the next start
#   own.random()         0.134 four times, as in the parent
#   np.random.random()   0.417 four times, as in the parent
#
# A good guess is 0.134 for the first, known from NumPy's workers that all draw the same: fork copies the memory.
# Another is that a seeded program repeats itself. But since Python 3.7 `random` seeds its own generator from the
# operating system in each forked child (os.register_at_fork at the end of Lib/random.py), also after random.seed();
# neither the module's docstring nor that of seed() mentions it. Started by spawn or forkserver, a worker never had
# the seed.
# Whoever calls random.seed once, and explores or splits data by `random` in worker processes, meets it: runs cannot
# be repeated, while a test in one process can. Seed in the worker, or pass a random.Random.
#
# Run it with Python 3.11 or newer on Linux and access to PyPI. It ends with 1 if the results differ from these.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check numpy==2.4.6
"$folder/venv/bin/python" - <<'PYTHON'
import multiprocessing
import random

import numpy as np

own = random.Random(1)


def draw(channel):
    channel.send((random.random(), own.random(), np.random.random()))


def workers():
    random.seed(1)
    np.random.seed(1)
    found = []
    for _ in range(2):
        here, there = multiprocessing.Pipe()
        worker = multiprocessing.get_context("fork").Process(target=draw, args=(there,))
        worker.start()
        found.append(here.recv())
        worker.join()
    return found


module, owned, numpy = zip(*workers(), *workers(), strict=True)
print("random", *module, "random.Random", *owned, "numpy", *numpy)
parents = random.random(), own.random(), np.random.random()
print("parent", *parents)
raise SystemExit(len({*module, parents[0]}) != 5 or {*owned} != {parents[1]} or {*numpy} != {parents[2]})
PYTHON
