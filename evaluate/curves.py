"""`busso curves RUN [RUN ...] [--out FILE.png]`: the curves of metrics.csv as a picture."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from busso.cards.base.errors import InputError
from busso.command.main import command
from busso.command.settings.checks import SettingsError
from busso.train.run.metrics.curves import FILE, Curve, read

PANELS = (
    ("games won in evaluation", "eval/win_rate_vs_"),
    ("loss", "train/loss"),
    ("decisions and updates per second", "time/"),
)
_LEFT_OUT = "weights_lag"


def draw(curves: Mapping[Path, Mapping[str, Curve]], out: Path) -> None:
    """Write a picture of the curves of each run, with one panel per kind of curve."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import PercentFormatter

    figure = Figure(figsize=(15, 4.2), layout="constrained")
    panels = figure.subplots(1, len(PANELS))
    for axis, (title, start) in zip(panels, PANELS, strict=True):
        for run, found in curves.items():
            for name, (steps, values) in found.items():
                if name.startswith(start) and not name.endswith(_LEFT_OUT):
                    label = name.removeprefix(start) or run.name
                    label = f"{run.name}: {label}" if len(curves) > 1 and label != run.name else label
                    points = zip(*sorted(zip(steps, values, strict=True)), strict=True)
                    axis.plot(*points, label=label, linewidth=1.6, marker="." if len(steps) < 20 else None)
        axis.set(title=title, xlabel="env steps (decisions)")
        axis.grid(alpha=0.3)
        if axis.lines:
            axis.legend(fontsize="small")
    panels[0].yaxis.set_major_formatter(PercentFormatter(1.0))
    panels[-1].set_yscale("log")
    figure.savefig(out, dpi=110)


@command
def main(arguments: Sequence[str]) -> int:
    """Run the command line; returns the exit code."""
    parser = argparse.ArgumentParser(
        "busso curves",
        epilog="example:\n  busso curves runs/tressette/default --out=curves.png",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("runs", nargs="+", type=Path, metavar="RUN", help="folder of a run, runs/<game>/<name>")
    parser.add_argument("--out", type=Path, default=None, help="picture to write (default: RUN/curves.png)")
    options = parser.parse_args(arguments)
    out = options.out or options.runs[0] / "curves.png"
    try:
        curves = {run: read(run) for run in options.runs}
    except InputError as error:
        raise SettingsError.of(error, "run") from None
    for run, found in curves.items():
        if not found:
            raise SettingsError(run / FILE, "holds no rows yet")
    draw(curves, out)
    print(f"written to {out}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
