#!/usr/bin/env bash
# Numba 0.68.1, NumPy 2.4.6: the minus of a small unsigned integer is taken in its own bits, then widened.
#
# In compiled code, for a = np.uint8(5) and b = np.uint8(3):
#
#   a - b   2  uint64          -b      253  uint64
#   0 - b  -3  int64           a + -b  258  uint64
#
# A good guess for a + -b is 2, by every rule that one may have in mind: C promotes to int, NumPy wraps in 8 bits
# (5 + 253 = 2), and NBEP 1 of Numba says that results are at least as wide as intp, so that -b would be 2**64 - 3
# and the sum would wrap to 2. The type is uint64 indeed, but the value is that of 8 bits; ~b is 252, too.
# Whoever computes with fields of np.uint8 or np.uint16, in records or arrays, meets it: write 0 - b or np.int64(b).
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


@numba.njit
def compiled(a, b):
    return a - b, 0 - b, -b, a + -b, ~b


found = compiled(np.uint8(5), np.uint8(3))
with np.errstate(over="ignore"):
    by_numpy = int(np.uint8(5) + -np.uint8(3))
print(f"a - b, 0 - b, -b, a + -b, ~b: {found} of {compiled.nopython_signatures[0].return_type}; a + -b by NumPy: {by_numpy}")
raise SystemExit(found != (2, -3, 253, 258, 252) or by_numpy != 2)
PYTHON
