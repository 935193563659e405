"""Runs: training them, reading what came of them, and handing their networks on."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from command.foreign import check_game, read_yaml
from command.settings.checks import SettingsError
from command.settings.old_keys import upgraded
from command.settings.quoting import in_quotes

_INTERRUPTED = 130


@dataclass(frozen=True)
class Run:
    """A run that has been trained, or is being trained: its folder, and what is written there.

    `settings` are those of its newest start, as config.yaml has them. `results` are those at its end, by opponent: the
    number of `deals`, `win_rate` and the result in the game's unit, each as a mean and the half-width of its 95%
    interval; empty before.
    """

    folder: Path
    settings: Mapping[str, Any]
    results: Mapping[str, Any]

    @property
    def game(self) -> str:
        """The name of the game."""
        return str(self.settings["game"]["name"])

    def curves(self) -> dict[str, tuple[NDArray[np.float64], NDArray[np.float64]]]:
        """What metrics.csv has, by name: the numbers of decisions, and the values there. Empty before the first row."""
        from train.run.metrics.curves import FILE, read

        found = read(self.folder) if (self.folder / FILE).exists() else {}
        return {name: _in_order(*curve) for name, curve in found.items()}


def _in_order(steps: Sequence[float], values: Sequence[float]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    order = np.lexsort((values, steps))
    return np.asarray(steps)[order], np.asarray(values)[order]


def load_run(folder: str | Path) -> Run:
    """The run in this folder. Raises BussoError where there is none.

    >>> import busso
    >>> busso.load_run("runs/tressette/nowhere")
    Traceback (most recent call last):
    command.settings.checks.SettingsError: runs/tressette/nowhere: no run is there; it has no config.yaml
    """
    path = Path(folder)
    config = path / "config.yaml"
    try:
        settings = upgraded(read_yaml(config.read_text()))
    except OSError:
        raise SettingsError(path, "no run is there; it has no config.yaml") from None
    except ValueError as error:
        raise SettingsError(config, f"damaged ({error})") from None
    if not isinstance(settings, dict) or not isinstance(settings.get("game"), dict):
        raise SettingsError(config, "not the settings of a run")
    name = str(settings["game"].get("name"))
    try:
        check_game(name)  # which the caller will load
    except SettingsError as error:
        hint = f'if you trust it, say busso.load_game("{name}") before' if error.hint else ""
        raise SettingsError(config, error.problem, hint) from None
    from train.run.results import read_results

    return Run(path, settings, read_results(path) or {})


def train(*overrides: str, quiet: bool = False, **settings: Any) -> Run:
    """Train a run, or go on with it, as `python -m train` with these settings does; returns it when it is complete.

    Settings are those of docs/settings.md, as keywords with groups as dictionaries, or as on the command line,
    `"network.hidden=[32,32]"`. `quiet` says nothing but warnings. The run is the folder `runs/<game>/<name>`; the same
    call goes on where it was stopped, and shows a complete one again. Ctrl-C leaves a checkpoint and raises
    KeyboardInterrupt. Call it in the main thread. Raises BussoError as the command says `error:`.

    >>> import busso
    >>> run = busso.train(
    ...     game="tressette", name="example", episodes=500, rollout="local", network={"hidden": [16]},
    ...     evaluation={"opponents": ["random"], "final_deals": 64}, quiet=True,
    ... )
    >>> str(run.folder), run.results["random"]["deals"]
    ('runs/tressette/example', 64)
    >>> steps, won = run.curves()["eval/win_rate_vs_random"]  # after so many decisions
    >>> player = busso.load_player(busso.load_game(run.game), run)
    """
    from train.api import train as start
    from train.run.device import this_machine
    from train.settings.resolve import resolve

    chosen = resolve([*overrides, *_overrides(settings)], this_machine())
    with ExitStack() as stack:
        if quiet:
            nowhere = stack.enter_context(Path(os.devnull).open("w"))
            stack.enter_context(redirect_stdout(nowhere))
            stack.enter_context(redirect_stderr(nowhere))
        code = start(chosen)
    if code == _INTERRUPTED:
        raise KeyboardInterrupt
    if code:
        raise SystemExit(code)  # a scheduler's signal, which is for the whole process
    return load_run(chosen.settings.folder)


def _overrides(settings: Mapping[str, Any], prefix: str = "") -> Iterator[str]:
    """As they would be typed; a group of settings is a dictionary."""
    for key, value in settings.items():
        if isinstance(value, Mapping):
            yield from _overrides(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}={_typed(value)}"


def _typed(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool | np.bool_):
        return str(bool(value)).lower()
    if isinstance(value, Mapping):
        return "{" + ",".join(f"{key}:{_typed(each)}" for key, each in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ",".join(map(_typed, value)) + "]"
    if isinstance(value, Path):
        return in_quotes(str(value))
    return str(value)


def export(
    run: str | Path | Run,
    to: str | Path | None = None,
    format: str = "onnx",  # noqa: A002 - as the command has it
    **settings: Any,
) -> Path:
    """Write the network of a run, a checkpoint or `champion` for other programs, with a card; returns the file.

    As `python -m evaluate.export`, whose other settings are keywords: `game` for whose champion it is, `input`,
    `license`, `check`. The file has been compared with the network. Raises BussoError.

    >>> import busso
    >>> busso.export("champion", to="my-agent", format="safetensors").name
    'network.safetensors'
    """
    from command.settings.compose import compose
    from evaluate.export.__main__ import ExportSettings
    from evaluate.export.__main__ import export as write

    where = {} if to is None else {"to": Path(to)}
    source = str(run.folder) if isinstance(run, Run) else str(run)
    given = {"run": Path(source), "format": format, **where, **settings}
    return write(compose(ExportSettings, "export", list(_overrides(given))), "game" in settings).file
