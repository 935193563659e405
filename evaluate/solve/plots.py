"""Pictures of solved and learned tables, as PNG files."""

from collections.abc import Sequence
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from numpy.typing import NDArray

from busso.cards.mdp import NOWHERE, StateGrid
from busso.command.settings.checks import SettingsError
from busso.evaluate.solve.solution import Solved

_LIGHT = 0.55  # cells brighter than this get dark letters
_ACTION_COLORS = ("#c8553d", "#588b8b", "#ffd5c2", "#2d3047")


def make_folder(name: str | Path) -> Path:
    """Create a folder if it is missing and return its path. Raises SettingsError if that fails."""
    folder = Path(name)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SettingsError("folder", f"cannot write to {folder} ({error.strerror})", "choose another") from None
    return folder


def arranged(layout: StateGrid, numbers: NDArray[np.float64]) -> NDArray[np.float64]:
    """Arrange one number per state as the table of a layout, NaN where it has no state."""
    return np.where(layout.states == NOWHERE, np.nan, numbers[layout.states])


def draw(
    solved: Solved,
    layout: StateGrid,
    values: NDArray[np.float64],
    policy: NDArray[np.int64] | None,
    folder: Path,
    whose: str,
) -> None:
    """Write heatmaps of the values, with a symmetric colour scale if they have both signs, and of a policy."""
    name = f"{solved.game.name}, {layout.title}"
    cells = arranged(layout, values)
    low, high = float(np.nanmin(cells)), float(np.nanmax(cells))
    bound = max(-low, high)
    scale = (-bound, bound, "RdYlGn") if low < 0 < high else (low, high, "viridis")
    digits = 2 if bound >= 0.1 else 4  # errors are small
    texts = [[("" if np.isnan(cell) else f"{cell:.{digits}f}") for cell in row] for row in cells]
    figure, title = _figure(cells), f"{name}: values, {whose}"
    _draw_cells(figure.subplots(), layout, cells, texts, title, mpl.colormaps[scale[2]], scale[0], scale[1])
    figure.savefig(folder / f"{whose}_values_{layout.name}.png", dpi=130)
    if policy is not None:
        actions = [solved.game.action_text(action) for action in range(solved.game.actions)]
        cells = actions_of(layout, policy)
        figure, title = _figure(cells), f"{name}: policy, {whose} ({legend(actions)})"
        draw_actions(figure.subplots(), layout, cells, cells, actions, title)
        figure.savefig(folder / f"{whose}_policy_{layout.name}.png", dpi=130)


def legend(actions: Sequence[str]) -> str:
    """Return the legend of actions: `H hit, S stand`."""
    return ", ".join(f"{action[0].upper()} {action}" for action in actions)


def actions_of(layout: StateGrid, policy: NDArray[np.int64]) -> NDArray[np.float64]:
    """Arrange the actions of a policy as the table of a layout, NaN where there is nothing to decide."""
    cells = arranged(layout, policy.astype(np.float64))
    return np.where(cells < 0, np.nan, cells)


def draw_actions(
    axes: Axes,
    layout: StateGrid,
    cells: NDArray[np.float64],
    right: NDArray[np.float64],
    actions: Sequence[str],
    title: str,
) -> None:
    """Draw the actions of `actions_of` by colour and first letter, in brackets where they differ from `right`."""

    def letter(cell: float, other: float) -> str:
        found = "" if np.isnan(cell) else actions[int(cell)][0].upper()
        return found if not found or cell == other else f"({found})"

    texts = [
        [letter(*pair) for pair in zip(row, others, strict=True)] for row, others in zip(cells, right, strict=True)
    ]
    colors = ListedColormap(list(_ACTION_COLORS[: len(actions)]))
    _draw_cells(axes, layout, cells, texts, title, colors, -0.5, len(actions) - 0.5)


def _figure(cells: NDArray[np.float64]) -> Figure:
    rows, columns = cells.shape
    return Figure(figsize=(1.8 + 0.6 * columns, 1.4 + 0.34 * rows), layout="constrained")


def _draw_cells(
    axes: Axes,
    layout: StateGrid,
    cells: NDArray[np.float64],
    texts: Sequence[Sequence[str]],
    title: str,
    colors: mpl.colors.Colormap,
    low: float,
    high: float,
) -> None:
    rows, columns = cells.shape
    mesh = axes.pcolormesh(np.ma.masked_invalid(cells), cmap=colors, vmin=low, vmax=high)
    dark = mesh.to_rgba(cells)[..., :3] @ (0.299, 0.587, 0.114) < _LIGHT
    for row, column in np.argwhere(~np.isnan(cells)).tolist():
        color = "white" if dark[row, column] else "black"
        place = column + 0.5, row + 0.5
        letters = axes.text(*place, texts[row][column], ha="center", va="center", size=8, color=color)
        letters.set_in_layout(False)  # hundreds of texts, all within their cells, would slow the layout down
    axes.set_xticks(np.arange(columns) + 0.5, layout.columns)
    axes.set_yticks(np.arange(rows) + 0.5, layout.rows)
    axes.invert_yaxis()
    axes.grid(visible=False)
    axes.set_xlabel(layout.column_label)
    axes.set_ylabel(layout.row_label)
    axes.set_title(title, size=10)
    axes.tick_params(length=0)
