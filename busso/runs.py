"""Training runs, reading their results, and exporting their networks."""

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

from busso.base.bounds import plain
from busso.base.terminal import visible_output
from busso.command.settings.checks import SettingsError, require
from busso.command.settings.quoting import as_text, escaped, in_quotes, value_text
from busso.train.run import read
from busso.train.run.read import Run

_INTERRUPTED = 130
_training = dict[int, object]()  # by process id: a forked child inherits its parent's entry and may train


def load_run(folder: str | Path) -> Run:
    """Return the run in a folder. Raises BussoError if there is none.

    >>> import busso
    >>> busso.load_run("runs/tressette/nowhere")
    Traceback (most recent call last):
    busso.command.settings.checks.SettingsError: run: runs/tressette/nowhere is not a folder; name a run folder, \
as in runs/tressette/default
    """
    try:
        run = read.load_run(_path("run", folder))
    except SettingsError as error:
        hint = re.sub(r"use game=(\S+)", r'call busso.load_game("\1") first', error.hint)
        raise SettingsError(error.key, error.problem, hint) from None
    _ = run.results  # refuse a damaged file here, not later
    return run


def train_agent(*overrides: str, quiet: bool = False, **settings: Any) -> Run:
    """Train or resume a run as `busso train` does with these settings; return it when complete.

    docs/reference/settings.md lists the settings. Pass them as keywords, with dictionaries for groups, or as strings in
    command-line form, `"network.hidden=[32,32]"`. `quiet` prints nothing but warnings. The run folder is
    `runs/<game>/<name>`. The same call resumes a stopped run, and prints the results of a complete one again. Ctrl-C,
    or a notebook's stop button, writes a checkpoint and raises KeyboardInterrupt; a second one raises it at once.
    Raises BussoError where the command prints `error:`.

    Outside the main thread the run receives no signals: it trains until it is complete or the process ends, and the
    same call resumes from the last checkpoint. To be able to stop such a run, train in a separate process and
    `terminate()` it. A process trains one run at a time, and `quiet` affects all of its threads.

    >>> import busso
    >>> run = busso.train_agent(
    ...     game="tressette", name="example", episodes=500, rollout="local", network={"hidden": [16]},
    ...     evaluation={"opponents": ["random"], "final_deals": 64}, quiet=True,
    ... )
    >>> str(run.folder), run.results["random"]["deals"]
    ('runs/tressette/example', 64)
    >>> steps, won = run.curves()["eval/win_rate_vs_random"]  # after these numbers of decisions
    >>> player = busso.load_player(busso.load_game(run.game), run)
    """
    from busso.train.api import prepare_run
    from busso.train.api import train as start
    from busso.train.run.signals import library_call
    from busso.train.settings.resolve import resolve

    with ExitStack() as stack:
        stack.enter_context(_only_training())
        for given in overrides:
            require(isinstance(given, str), "train_agent", "overrides as strings, such as 'seed=2'", given)
        chosen = resolve([*overrides, *_overrides(settings)])
        if quiet:
            nowhere = stack.enter_context(Path(os.devnull).open("w", encoding="utf-8"))
            stack.enter_context(redirect_stdout(nowhere))
            stack.enter_context(redirect_stderr(nowhere))
        stack.enter_context(visible_output())
        stack.enter_context(library_call())
        code = start(prepare_run(chosen))
    if code == _INTERRUPTED:
        raise KeyboardInterrupt
    if code:
        raise SystemExit(code)  # a scheduler's signal is meant for the whole process
    return load_run(chosen.settings.folder)


def _path(key: str, value: object) -> str | Path:
    if not isinstance(value, str | Path):
        raise SettingsError(key, f"expected a path, not {value!r}")
    return value


@contextmanager
def _only_training() -> Iterator[None]:
    """Allow one training in this process, whose settings, logs and standard output it shares. Raises SettingsError."""
    me = object()
    if _training.setdefault(os.getpid(), me) is not me:
        raise SettingsError(
            "train_agent", "another thread is already training in this process", "wait, or train in a new process"
        )
    try:
        yield
    finally:
        del _training[os.getpid()]


def _overrides(settings: Mapping[str, Any], prefix: str = "") -> Iterator[str]:
    """Yield the settings as command-line overrides; dictionaries are groups."""
    for key, value in settings.items():
        if isinstance(value, Mapping):
            yield from _overrides(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}={_typed(value)}"


def _typed(value: Any) -> str:
    value = plain(value)
    if isinstance(value, Mapping):
        return "{" + ",".join(f"{escaped(str(key))}:{_typed(each)}" for key, each in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ",".join(map(_typed, value)) + "]"
    if not isinstance(value, Path | str | int | float | None):
        raise SettingsError(
            "train_agent", f"no setting has the type {type(value).__name__}", "pass a number, a string or a list"
        )
    if isinstance(value, Path):
        return in_quotes(str(value))
    return as_text(value) if isinstance(value, str) else value_text(value)


def export(
    run: str | Path | Run,
    to: str | Path | None = None,
    **settings: Any,
) -> Path:
    """Export the network of a run, a checkpoint or `champion` as ONNX with a model card; return the file.

    Other settings of `busso export` are keywords: `game` (of the champion), `format`, `input`, `license`. An ONNX file
    is compared with the network. Raises BussoError.

    >>> import busso
    >>> busso.export("champion", to="my-agent").name
    'model.onnx'
    """
    from busso.command.settings.compose import compose
    from busso.evaluate.export.__main__ import ExportSettings
    from busso.evaluate.export.__main__ import export as write

    where = {} if to is None else {"to": Path(_path("to", to))}
    given = {"run": Path(run.folder if isinstance(run, Run) else _path("run", run)), **where, **settings}
    return write(compose(ExportSettings, "export", list(_overrides(given))), "game" in settings)[0]
