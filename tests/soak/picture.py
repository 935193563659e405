"""The samples of a soak as a picture."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tests.soak.samples import Series

_PANELS = {
    "memory": ("memory but of files, MB", 1e-6),
    "pss": ("PSS, MB", 1e-6),
    "rss": ("RSS, MB", 1e-6),
    "descriptors": ("descriptors", 1),
    "threads": ("threads", 1),
    "processes": ("processes", 1),
    "files": ("files", 1),
    "files of Ray": ("files of Ray", 1),
    "bytes": ("bytes of files, MB", 1e-6),
    "files left": ("files after a life", 1),
}
_COLORS = ("#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#ff7f0e", "#8c564b", "#e377c2", "#17becf", "#7f7f7f", "#bcbd22")


def draw(series: Mapping[tuple[str, str], Series], events: Sequence[tuple[float, str]], path: Path) -> None:
    """One panel a measure, one line a process or folder, one colour a role; what was done as grey lines."""
    roles = list(dict.fromkeys(_role(owner) for owner, _ in series))
    colors = {role: _COLORS[k % len(_COLORS)] for k, role in enumerate(roles)}
    figure = Figure(figsize=(15, 2 + 2.2 * len(_PANELS)), layout="constrained")
    for axes, (measure, (title, scale)) in zip(
        figure.subplots(len(_PANELS), sharex=True), _PANELS.items(), strict=True
    ):
        shown = {owner: each for (owner, name), each in series.items() if name == measure}
        _panel(axes, shown, colors, scale)
        axes.set_ylabel(title)
        for seconds, _ in events:
            axes.axvline(seconds / 60, color="0.85", linewidth=0.8, zorder=0)
    axes.set_xlabel(f"minutes; {len(events)} kills and stops in grey")
    figure.savefig(path, dpi=80)


def _panel(axes: Axes, shown: Mapping[str, Series], colors: Mapping[str, str], scale: float) -> None:
    named: set[str] = set()
    for owner, (seconds, values) in shown.items():
        role = _role(owner)
        label = None if role in named else role
        named.add(role)
        minutes, scaled = [each / 60 for each in seconds], [each * scale for each in values]
        axes.plot(minutes, scaled, color=colors[role], label=label, linewidth=1.2)
    axes.set_ylim(bottom=0)
    axes.grid(alpha=0.3)
    if shown:
        axes.legend(fontsize="x-small", loc="center left", bbox_to_anchor=(1.0, 0.5))


def _role(owner: str) -> str:
    return owner.rstrip("0123456789 ")
