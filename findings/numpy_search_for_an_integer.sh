#!/usr/bin/env bash
# NumPy 2.4.6: np.searchsorted looks for a Python integer in an array of uint64 by way of float64, and misses it.
#
# For keys = np.array([2**60, 2**60 + 1, 2**60 + 2], np.uint64):
#
#   np.searchsorted(keys, 2**60 + 1)              0
#   np.searchsorted(keys, np.uint64(2**60 + 1))   1
#   keys >= 2**60 + 1                             False True True
#
# A good guess is 1 for both: since NumPy 2 (NEP 50) a Python integer takes the type of the array, as in the
# comparison. But np.searchsorted first makes an array of it, which is int64 below 2**63, and the common type of
# uint64 and int64 is float64: keys and value are rounded to 53 bits. np.digitize does the same. From 2**63 on the
# integer becomes uint64, and the result is right, as it is for all keys below 2**53, so that tests with small keys
# pass.
# Whoever looks up positions by hashes of 64 bits, or hands by packed cards, meets it: write np.uint64(value).
#
# Run it with Python 3.11 or newer and access to PyPI. It ends with 1 if the results differ from these.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check numpy==2.4.6
"$folder/venv/bin/python" - <<'PYTHON'
import numpy as np

value = 2**60 + 1
keys = np.array([2**60, value, 2**60 + 2], np.uint64)
found = [int(np.searchsorted(keys, each)) for each in (value, np.uint64(value))]
large = int(np.searchsorted(keys + np.uint64(2**63), value + 2**63))
print("place of 2**60 + 1:", *found, "compared:", keys >= value, "place above 2**63:", large)
raise SystemExit(found != [0, 1] or large != 1 or (keys >= value).tolist() != [False, True, True])
PYTHON
