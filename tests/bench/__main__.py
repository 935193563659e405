"""`python -m tests.bench [NAME ...]`: the figures of docs/performance.md, one JSON line each, on one core."""

import sys

import torch

from tests.bench import cluster, memory, small_games, spike, threads, tressette


def main(names: list[str]) -> int:
    """Measure all figures, or those whose function is named."""
    torch.set_num_threads(1)
    modules = (tressette, spike, small_games, cluster, memory, threads)
    figures = {function.__name__: function for module in modules for function in module.FIGURES}
    unknown = [name for name in names if name not in figures]
    if unknown:
        print(f"error: no figure {unknown[0]!r}; there are {', '.join(figures)}", file=sys.stderr)
        return 2
    for name in names or figures:
        figures[name]()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
