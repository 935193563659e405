#!/usr/bin/env bash
# Numba 0.68.1: sorted(cards, key=rank) and cards.sort(key=rank) do not keep the order of equal elements.
#
# For the 40 cards `[card * 7 % 40 for card in range(40)]` and rank(card) = card // 4, the first three ranks become
#
#   Python     0 2 1 3   7 4 6 5   9 11 8 10      in the order of the deck, as Python guarantees
#   compiled   0 3 2 1   7 5 6 4   10 9 8 11
#
# A good guess is Python's order: the compiled function takes the same `key`, and "sort by suit, then by rank" in two
# calls relies on it. But Numba sorts indices by their keys with a quicksort of its own (arg_sort_forwards in
# numba/cpython/listobj.py). Fewer than 16 elements are sorted by insertion, which is stable (SMALL_QUICKSORT in
# numba/misc/quicksort.py), so that a test with a hand passes and a deck fails. A rule such as "the first of the
# lowest cards" then plays another card in compiled code than in plain Python (NUMBA_DISABLE_JIT=1).
# Whoever sorts hands or moves by a key meets it: make keys unique, as in key = rank * 40 + card.
#
# Run it with Python 3.11 or newer and access to PyPI. It ends with 1 if the results differ from these.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check numba==0.68.1 numpy==2.4.6
"$folder/venv/bin/python" - <<'PYTHON'
import numba


@numba.njit
def rank(card):
    return card // 4


@numba.njit
def by_rank(cards):
    return sorted(cards, key=rank)


deck = [card * 7 % 40 for card in range(40)]
compiled, plain = by_rank(deck), by_rank.py_func(deck)
small = by_rank(deck[:15]) == by_rank.py_func(deck[:15])
print("Python:", *plain[:12], "compiled:", *compiled[:12], "the same for 15 cards:", small)
expected = [0, 2, 1, 3, 7, 4, 6, 5, 9, 11, 8, 10], [0, 3, 2, 1, 7, 5, 6, 4, 10, 9, 8, 11]
raise SystemExit((plain[:12], compiled[:12]) != expected or not small)
PYTHON
