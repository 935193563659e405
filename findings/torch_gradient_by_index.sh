#!/usr/bin/env bash
# PyTorch 2.13.0 on a CPU: in bfloat16 the gradient of a row that is read by its index stops growing at 256.
#
# For 4,096 rows that all read card 0 of a table w of 40 cards, the gradient of their sum is, by type of w:
#
#                                                   float32   bfloat16   float16
#   F.embedding(cards, w), w[cards], embedding_bag     4096        256      2048
#   one_hot(cards) @ w                                 4096       4096      4096
#
# A good guess is 4096 everywhere, give or take a rounding: sums and matrix products of bfloat16 add up in float32,
# and the four expressions are the same function. But the backward passes of the first three add row by row into the
# gradient, which is bfloat16 itself, and 256 + 1 is 256 there. The error is not noise: it has the same sign each
# time, grows with the batch, and hits the most frequent cards most. It does not depend on threads or on the
# instruction set.
# Whoever trains embeddings of cards, seats or positions in bfloat16 without autocast on a CPU, with batches of
# thousands, meets it: keep the table in float32, or multiply by one-hot rows.
#
# Run it with Python 3.11 or newer and access to PyPI. It ends with 1 if the results differ from these.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check torch==2.13.0
"$folder/venv/bin/python" -W ignore - <<'PYTHON'
import torch
from torch.nn import functional as F

cards = torch.zeros(4096, dtype=torch.long)
ways = {
    "embedding": lambda w: F.embedding(cards, w),
    "index": lambda w: w[cards],
    "embedding_bag": lambda w: F.embedding_bag(cards[:, None], w, mode="sum"),
    "one_hot": lambda w: F.one_hot(cards, 40).to(w.dtype) @ w,
}
found = {}
for dtype in (torch.float32, torch.bfloat16, torch.float16):
    for name, read in ways.items():
        w = torch.zeros(40, 4, dtype=dtype, requires_grad=True)
        read(w).sum().backward()
        found.setdefault(dtype, []).append(int(w.grad[0, 0]))
    print(dtype, dict(zip(ways, found[dtype], strict=True)))
expected = [[4096] * 4, [256] * 3 + [4096], [2048] * 3 + [4096]]
raise SystemExit(list(found.values()) != expected)
PYTHON
