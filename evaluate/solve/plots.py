"""Pictures of solved and learned tables, as PNG files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from numpy.typing import NDArray

from busso.cards.tabular.mdp import NOWHERE, Layout
from busso.command.settings.checks import SettingsError
from busso.evaluate.solve.solution import Solved

_LIGHT = 0.55  # cells brighter than this get dark letters
_ACTION_COLORS = ("#c8553d", "#588b8b", "#ffd5c2", "#2d3047")


def make_folder(name: str | Path) -> Path:
    """The folder, there to be written to. Raises SettingsError when it cannot be."""
    folder = Path(name)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SettingsError("folder", f"cannot write to {folder} ({error.strerror})", "choose another") from None
    return folder


def arranged(layout: Layout, numbers: NDArray[np.float64]) -> NDArray[np.float64]:
    """One number per state as the table of a layout, NaN where it has no state."""
    return np.where(layout.states == NOWHERE, np.nan, numbers[layout.states])


def draw(
    solved: Solved,
    layout: Layout,
    values: NDArray[np.float64],
    policy: NDArray[np.int64] | None,
    folder: Path,
    whose: str,
) -> None:
    """A heatmap of the values, and of the policy if there is one."""
    name = f"{solved.game.name}, {layout.title}"
    value_heatmap(layout, values, f"{name}: values, {whose}", folder / f"{whose}_values_{layout.name}.png")
    if policy is not None:
        actions = [solved.game.action_text(action) for action in range(solved.game.actions)]
        path = folder / f"{whose}_policy_{layout.name}.png"
        policy_heatmap(layout, policy, actions, f"{name}: policy, {whose}", path)


def value_heatmap(layout: Layout, values: NDArray[np.float64], title: str, path: Path) -> None:
    """Numbers by state, coloured from the lowest to the highest; around 0 when there are both signs."""
    cells = arranged(layout, values)
    low, high = float(np.nanmin(cells)), float(np.nanmax(cells))
    bound = max(-low, high)
    scale = (-bound, bound, "RdYlGn") if low < 0 < high else (low, high, "viridis")
    digits = 2 if bound >= 0.1 else 4  # errors are small
    texts = [[("" if np.isnan(cell) else f"{cell:.{digits}f}") for cell in row] for row in cells]
    _heatmap(layout, cells, texts, title, path, mpl.colormaps[scale[2]], scale[0], scale[1])


def policy_heatmap(layout: Layout, policy: NDArray[np.int64], actions: Sequence[str], title: str, path: Path) -> None:
    """Actions by state, each with its colour and first letter."""
    cells = arranged(layout, policy.astype(np.float64))
    texts = [[("" if np.isnan(cell) else actions[int(cell)][0].upper()) for cell in row] for row in cells]
    legend = ", ".join(f"{action[0].upper()} {action}" for action in actions)
    colors = ListedColormap(list(_ACTION_COLORS[: len(actions)]))
    _heatmap(layout, cells, texts, f"{title} ({legend})", path, colors, -0.5, len(actions) - 0.5)


def _heatmap(
    layout: Layout,
    cells: NDArray[np.float64],
    texts: Sequence[Sequence[str]],
    title: str,
    path: Path,
    colors: mpl.colors.Colormap,
    low: float,
    high: float,
) -> None:
    rows, columns = cells.shape
    figure = Figure(figsize=(1.8 + 0.6 * columns, 1.4 + 0.34 * rows), layout="constrained")
    axes = figure.subplots()
    image = axes.imshow(cells, cmap=colors, vmin=low, vmax=high, aspect="auto")
    dark = image.to_rgba(cells)[..., :3] @ (0.299, 0.587, 0.114) < _LIGHT
    for row, column in np.argwhere(~np.isnan(cells)).tolist():
        color = "white" if dark[row, column] else "black"
        letters = axes.text(column, row, texts[row][column], ha="center", va="center", size=9, color=color)
        letters.set_in_layout(False)  # they are within their cells, and there are hundreds of them
    axes.set_xticks(range(columns), layout.columns)
    axes.set_yticks(range(rows), layout.rows)
    axes.set_xlabel(layout.column_label)
    axes.set_ylabel(layout.row_label)
    axes.set_title(title, size=10)
    axes.tick_params(length=0)
    figure.savefig(path, dpi=130)
