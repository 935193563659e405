#!/usr/bin/env bash
# NumPy 2.4.6: a seed that is a list of integers may end with zeros, and they change nothing.
#
#   default_rng(5), default_rng([5]), default_rng([5, 0]) and default_rng([5, 0, 0]) give the same numbers
#   default_rng([5, 1]) and default_rng(5 + 2**32) give the same numbers
#
# A good guess is that all six differ: NumPy's page on parallel generators says that SeedSequence "will take all of
# the bits that you provide", and of [root_seed, worker_id] that "it will *work*", with about the same guarantees
# against collisions as spawning. But seeds are cut into words of 32 bits, and filled up with zeros to four words
# before they are hashed (mix_entropy in numpy/random/bit_generator.pyx), so that worker 0 draws the numbers of
# default_rng(root_seed), the generator of the main program. Children spawned by the two are equal as well. This holds
# for seeds of up to four words.
# Whoever seeds episodes or workers by [seed, index] beside a generator of the seed itself meets it: the sample with
# index 0 is not a new one. Put the index first, as the page advises for another reason, count from 1, or spawn.
#
# Run it with Python 3.11 or newer and access to PyPI. It ends with 1 if the results differ from these.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check numpy==2.4.6
"$folder/venv/bin/python" - <<'PYTHON'
import numpy as np

seeds = (5, [5], [5, 0], [5, 0, 0], [5, 1], 5 + 2**32, [0, 5])
found = [np.random.default_rng(seed).integers(1000, size=4).tolist() for seed in seeds]
children = [np.random.default_rng(seed).spawn(1)[0].integers(1000, size=4).tolist() for seed in (5, [5, 0])]
for seed, numbers in zip(seeds, found, strict=True):
    print(f"{seed!s:>10}: {numbers}")
print("children of 5 and [5, 0]:", *children)
same = found[0] == found[1] == found[2] == found[3] and found[4] == found[5] and children[0] == children[1]
raise SystemExit(not same or found[0] == found[4] or found[0] == found[6])
PYTHON
