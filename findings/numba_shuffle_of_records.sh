#!/usr/bin/env bash
# Numba 0.68.1, NumPy 2.4.6: np.random.shuffle and np.random.permutation lose records, and others take their place.
#
# In compiled code, for an array of 40 records, such as cards with a rank and a suit or transitions of a buffer:
#
#   np.random.seed(1); np.random.shuffle(cards)         19 different cards are left of 40
#   np.random.seed(1); np.random.permutation(cards)     19 of 40
#
# A good guess is 40, a permutation: NumPy's own shuffle keeps all 40 records, Numba's keeps all 40 of an array of
# integers, and Numba's documentation asks for no more than "a one-dimension Numpy array or buffer-providing object".
# But for one dimension Numba's loop is `x[i], x[j] = x[j], x[i]` (do_shuffle_impl in numba/cpython/randomimpl.py),
# and a record read from an array is a view of its row, not a copy, so that the first assignment changes what the
# second one writes. For two dimensions the same function copies the rows. Nothing is raised, and each record by
# itself is valid.
# Whoever deals or samples from structured arrays in compiled code meets it: shuffle indices, then write
# cards[indices].
#
# Run it with Python 3.11 or newer and access to PyPI. It ends with 1 if the results differ from these.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check numba==0.68.1 numpy==2.4.6
"$folder/venv/bin/python" - <<'PYTHON'
import numba
import numpy as np

cards = np.array([(rank, suit) for rank in range(10) for suit in range(4)], [("rank", np.uint8), ("suit", np.uint8)])


@numba.njit
def shuffled(array):
    np.random.seed(1)
    np.random.shuffle(array)
    return array


@numba.njit
def permuted(array):
    np.random.seed(1)
    return np.random.permutation(array)


def by_numpy(array):
    np.random.RandomState(1).shuffle(array)
    return array


found = {
    "shuffle of records": np.unique(shuffled(cards.copy())).size,
    "permutation of records": np.unique(permuted(cards)).size,
    "shuffle of integers": np.unique(shuffled(np.arange(40))).size,
    "NumPy's shuffle of records": np.unique(by_numpy(cards.copy())).size,
}
print("different ones of 40:", ", ".join(f"{number} after {what}" for what, number in found.items()))
raise SystemExit(list(found.values()) != [19, 19, 40, 40])
PYTHON
