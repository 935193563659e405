"""`python -m evaluate.curves RUN [RUN ...] [--out FILE.png]`: the curves of metrics.csv as a picture."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from cards.base.errors import InputError
from command.settings.line import example_text
from command.terminal.progress import Progress
from train.run.metrics.curves import FILE, Curve, read

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PANELS = (
    ("games won in evaluation", "eval/win_rate_vs_"),
    ("loss", "train/loss"),
    ("decisions and updates per second", "time/"),
)


def read_curves(run: Path) -> dict[str, Curve]:
    """The scalars of a run by name, each as env_steps and values. Raises OSError or ValueError naming the file."""
    curves = read(run)
    if not curves:
        raise InputError(run / FILE, "holds no rows yet")
    return curves


def draw(runs: Sequence[Path], out: Path) -> None:
    """Write a picture with one panel per kind of curve."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, len(PANELS), figsize=(15, 4.2), layout="constrained")
    with Progress("reading", len(runs), "runs") as progress:
        found = []
        for run in runs:
            found.append((run, read_curves(run)))
            progress.advance()
    for run, curves in found:
        prefix = f"{run.name}: " if len(runs) > 1 else ""
        for axis, (title, start) in zip(axes, PANELS, strict=True):
            named = {prefix + n.removeprefix(start): c for n, c in curves.items() if n.startswith(start)}
            _panel(axis, title, {name or run.name: curve for name, curve in named.items()})
    axes[0].yaxis.set_major_formatter(mpl.ticker.PercentFormatter(1.0))
    axes[-1].set_yscale("log")
    figure.savefig(out, dpi=110)
    plt.close(figure)


def _panel(axis: Axes, title: str, curves: dict[str, Curve]) -> None:
    for name, (steps, values) in curves.items():
        if name.endswith("weights_lag"):
            continue
        ordered = sorted(zip(steps, values, strict=True))
        axis.plot(*zip(*ordered, strict=True), label=name, linewidth=1.6)
    axis.set_title(title)
    axis.set_xlabel("env steps (decisions)")
    axis.grid(alpha=0.3)
    if curves:
        axis.legend(fontsize="small")


def main(arguments: Sequence[str]) -> int:
    """Run the command line; returns the exit code."""
    parser = argparse.ArgumentParser(
        "python -m evaluate.curves",
        epilog=example_text("python -m evaluate.curves runs/tressette/default --out=curves.png"),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("runs", nargs="+", type=Path, metavar="RUN", help="folder of a run, runs/<game>/<name>")
    parser.add_argument("--out", type=Path, default=None, help="picture to write (default: RUN/curves.png)")
    options = parser.parse_args(arguments)
    out = options.out or options.runs[0] / "curves.png"
    try:
        draw(options.runs, out)
    except OSError as error:
        print(f"error: {error.filename or out}: {error.strerror or error}", file=sys.stderr)
        return 2
    except ValueError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(f"written to {out}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
