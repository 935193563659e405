#!/usr/bin/env bash
# safetensors 0.8.0: an array is saved as its memory lies, not as it reads, without a word; 0.7.0 saved the numbers.
#
#   saved                                              loaded by 0.8.0            by 0.7.0
#   NumPy, [[0, 1, 2], [3, 4, 5]] in Fortran's order   [[0, 3, 1], [4, 2, 5]]     [[0, 1, 2], [3, 4, 5]]
#   NumPy, its transpose                               [[0, 1], [2, 3], [4, 5]]   [[0, 3], [1, 4], [2, 5]]
#   PyTorch, a transpose                               ValueError, "non contiguous"
#   PyTorch, [1+2j, 3-4j].conj()                       [1+2j, 3-4j]               [1+2j, 3-4j]
#
# A good guess for NumPy is that a file has the numbers of the array, as it had up to 0.7.0 and as numpy.save does, or
# that it is refused, as for PyTorch. The shape is right and the values are all there, so no test of shapes or sums
# shows it. A good guess for conj() is the conjugate or an error: the tensor says that it is contiguous, and that it is
# conjugated is a flag beside the memory, which the writer does not read. Whoever saves a transposed weight or what
# scipy.linalg or a Fortran library returned meets the first: save np.ascontiguousarray(x) and x.resolve_conj().
#
# Run it with Python 3.11 or newer and access to PyPI. It ends with 1 if the results differ from these.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cat >"$folder/saved.py" <<'PYTHON'
import sys

import numpy as np
import safetensors.numpy
import safetensors.torch
import torch


def again(library, x):
    try:
        return library.load(library.save({"x": x}))["x"].tolist()
    except ValueError as error:
        return "refused" if "non contiguous" in str(error) else str(error)


rows = np.arange(6).reshape(2, 3)
conjugate = torch.tensor([1 + 2j, 3 - 4j]).conj()
found = [
    again(safetensors.numpy, np.asfortranarray(rows)),
    again(safetensors.numpy, rows.T),
    again(safetensors.torch, torch.from_numpy(rows).T),
    again(safetensors.torch, conjugate),
]
print(f"safetensors {safetensors.__version__}: {found}")
old = safetensors.__version__ == "0.7.0"
seen = [rows.tolist(), rows.T.tolist()] if old else [[[0, 3, 1], [4, 2, 5]], [[0, 1], [2, 3], [4, 5]]]
sys.exit(found != [*seen, "refused", [1 + 2j, 3 - 4j]] or conjugate.tolist() != [1 - 2j, 3 + 4j])
PYTHON
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check torch==2.13.0
for version in 0.7.0 0.8.0; do
    "$folder/venv/bin/pip" install --quiet --disable-pip-version-check "safetensors==$version" numpy==2.4.6 packaging
    "$folder/venv/bin/python" -W ignore "$folder/saved.py"
done
