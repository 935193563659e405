"""Run folder: its owner, its settings, its newest checkpoint, and copies of the user's own files.

The copies are read and compared but never run.
"""

from __future__ import annotations

import logging
import os
import secrets
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import asdict
from functools import cache
from pathlib import Path, PurePath
from typing import Any

from busso.base import own_files
from busso.base.files import delete_left_over, make_folder, write_atomic
from busso.base.lock import InUseError, Lock, in_job
from busso.base.own_files import OwnFile
from busso.base.terminal import one_line
from busso.cards import packages
from busso.command.settings.checks import SettingsError
from busso.command.settings.compose import as_yaml
from busso.command.settings.quoting import NETWORK_KEY, TYPED_NETWORK, assigned
from busso.train.run import checkpoint, results
from busso.train.run.background_writer import BackgroundWriter
from busso.train.run.device import failure_in
from busso.train.run.signals import StopRequest
from busso.train.settings.resolve import changes
from busso.train.settings.run import BUDGET_KEYS, MACHINE_KEYS, RunSettings

CODE = "code"  # in the run folder
log = logging.getLogger("train")
# Settings that may change when a run is resumed: its length, its machines and how it uses them, and the intervals of
# logs and evaluations. Any other makes it another run.
CHANGEABLE = (*BUDGET_KEYS, *MACHINE_KEYS, "log_every_episodes", "log_min_seconds")
CHANGEABLE_GROUPS = ("rollout.", "evaluation.", "checkpoint.")
CAPACITY = "replay.capacity"  # may change too; the buffer then starts empty
_OWN_CODE = (NETWORK_KEY, "learner.loss")
_AS_TYPED = {NETWORK_KEY: TYPED_NETWORK}
LOCK = ".lock"  # in a run folder


class RunInUseError(SettingsError):
    """Conflict with another process that holds the run folder."""


class RunFolder:
    """Run folder runs/<game>/<name>, held by one process at a time. Use as a context."""

    def __init__(self, settings: RunSettings, composed: Mapping[str, str] | None = None) -> None:
        """Prepare the folder; `composed` has Hydra's files for `.hydra/`, which are written here, under the lock."""
        self.path = settings.folder
        self._composed = composed or {}
        self.checkpoints = self.path / "checkpoints"
        self.run_id = secrets.token_hex(8)  # not from the run's random generators
        self._settings = settings
        self._lock = Lock(self.path / LOCK)
        self.writer = BackgroundWriter(self.require_own)

    def __enter__(self) -> RunFolder:
        """Take the lock; in a job, wait until another owner shows that it is alive or dead, or a signal arrives."""
        with StopRequest(b"\nstopping\n") as stop:
            try:
                self._take(lambda: self._lock.acquire(waits_for=in_job, stopped=lambda: stop.signal is not None))
            except RunInUseError as error:
                if stop.signal is not None:
                    error.exit_code = stop.exit_code(again=True)
                raise
        try:
            stop.hand_on()
        except BaseException:
            self._lock.release()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._lock.release()

    def _take(self, acquire: Callable[[], object]) -> None:
        try:
            make_folder(self.checkpoints)
            acquire()
        except InUseError as error:
            problem = f"in use by another process ({error.who})"
            in_use = RunInUseError(self.path, problem, f"wait, or choose another run with name=...; {error.hint}")
            in_use.exit_code = error.exit_code
            raise in_use from None
        except OSError as error:
            problem = f"cannot use {self.path} ({error.strerror})"
            raise SettingsError("runs", problem, "choose another with runs=...") from None

    @property
    def lost(self) -> bool:
        """True if another process was seen to have taken over the run. Free; `require_own` checks again."""
        return self._lock.lost

    def require_own(self) -> None:
        """Raise LostError if another process has taken over the run, as after a suspension of minutes.

        To be called before anything is written or deleted.
        """
        self._lock.require_own()

    def resume(self, load_state_dict: Callable[[dict[str, Any]], None]) -> Path | None:
        """Load the newest good checkpoint of the run and return its path, None if there is none.

        `load_state_dict` raises ValueError or RuntimeError if it does not fit; other exceptions are bugs and pass.
        Damaged newer checkpoints are renamed, with a warning.

        Raises SettingsError if the run was started with other settings, CheckpointError if no checkpoint is intact or
        the newest intact one does not fit, UnreadableError if one cannot be read and OtherFormatError if one is of
        another version; then nothing is renamed.
        """
        self.require_own()
        for folder in (self.path, self.checkpoints):
            delete_left_over(folder)  # left by a start killed while writing
        found = checkpoint.load_newest(self.checkpoints)
        # Without a checkpoint nothing has been learned: other settings may take over the folder.
        if found is None:
            return None
        self._compare(found)
        self.require_own()  # reading it may have taken minutes
        for path, problem in found.problems.items():
            checkpoint.set_aside(path)
            log.warning("%s; it is renamed and the previous one is used", problem)
        state = _State(found.state)
        try:
            run_id = str(state[checkpoint.RUN_KEY])
            load_state_dict(state)
        except (ValueError, RuntimeError) as error:
            checkpoint.raise_for_memory(error)
            if failure_in(error):
                raise
            log.info("%s cannot be loaded", found.path, exc_info=error)
            lines = str(error).splitlines()[:2]  # PyTorch's first one names the network, the second the layer
            reason = " ".join(" ".join(lines).split()) or type(error).__name__
            problem = f"does not match this run ({reason})"
            raise checkpoint.CheckpointError(found.path, problem, "start another with name=...") from None
        self.run_id = run_id
        return found.path

    def save_checkpoint(self, done: int, state: dict[str, Any], keep: int) -> Future[None]:
        """Write a checkpoint in the background. Raises CheckpointError if an earlier one could not be written."""
        return self.writer.save(self.checkpoint_at(done), state | {checkpoint.RUN_KEY: self.run_id}, keep)

    def checkpoint_at(self, done: int) -> Path:
        """Return the path of the checkpoint after `done` episodes or iterations."""
        return checkpoint.path_for(self.checkpoints, done)

    def write_results(self, found: Mapping[str, Any], done: int, env_steps: int) -> None:
        """Write results.json of the run, complete after `done` episodes or iterations. Raises LostError."""
        self.require_own()
        results.write_of_run(self.path, found, self.run_id, self.checkpoint_at(done).name, env_steps)

    def results_against(self, opponents: Sequence[str], deals: int) -> dict[str, Any] | None:
        """Return the run's results if results.json has them against these players, on as many deals; else None."""
        try:
            found = results.read_results(self.path)
            is_own = results.run_of_results(self.path) == self.run_id
        except SettingsError:  # it is damaged, and written again
            return None
        if found is None or not is_own or set(found) != set(opponents):
            return None
        return found if all(each["deals"] == deals for each in found.values()) else None

    def newest(self) -> Path | None:
        """Return the checkpoint that `resume` would load, changing nothing. Raises as it and entering the folder."""
        if not self.path.exists():
            return None
        self._take(self._lock.acquire)
        try:
            found = checkpoint.load_newest(self.checkpoints)
            if found is not None:
                self._compare(found)
        finally:
            self._lock.release()
        return found.path if found else None

    def write_settings(self, used: RunSettings) -> None:
        """Write the latest start's settings, including device and threads, and copies of the user's files."""
        self.require_own()
        write_atomic(self.path / "config.yaml", as_yaml(used))
        for typed, before in write_sources(self.path, used).items():
            log.warning("%s has changed since the last start of this run; the earlier text is in %s", typed, before)
        for name, text in self._composed.items():
            make_folder(self.path / ".hydra")
            write_atomic(self.path / ".hydra" / name, text)

    def _compare(self, found: checkpoint.LoadedCheckpoint) -> None:
        """Raise SettingsError if the run was started with other settings."""
        before = found.state.get("settings")
        if not isinstance(before, dict):
            raise checkpoint.CheckpointError(found.path, "contains no settings")
        changed = {
            key: values
            for key, values in changes(asdict(self._settings), before).items()
            if key not in (*CHANGEABLE, CAPACITY) and not key.startswith(CHANGEABLE_GROUPS)
            if key not in _OWN_CODE or _in_any_folder(values[0]) != _in_any_folder(values[1])
        }
        if "game.name" in changed:
            changed = {"game.name": changed["game.name"]}  # the other differences follow from it
        if changed:
            changed = {_AS_TYPED.get(key, key): values for key, values in changed.items()}
            key, (new, old) = next(iter(changed.items()))
            former = " ".join(assigned(name, value) for name, (_, value) in changed.items())
            more = f" (and {len(changed) - 1} more: {', '.join(list(changed)[1:])})" if len(changed) > 1 else ""
            problem = f"the run in {self.path} was started with {old!r}, not {new!r}{more}"
            raise SettingsError(key, problem, f"start another with name=..., or resume it with {former}")


def write_sources(folder: Path, settings: RunSettings) -> dict[str, Path]:
    """Copy the user's files; return those changed or gone since the last start, as typed, with the old text's path."""
    changed = {}
    for file in _files_of(settings):
        texts = _texts(file)
        for name in [*texts, *(_kept(folder, file) - texts.keys())]:
            path = folder / CODE / name
            if name not in texts or _differs(path, texts[name]):
                changed[_typed(file, name)] = _put_aside(path)
        for name, text in texts.items():
            make_folder((folder / CODE / name).parent)
            write_atomic(folder / CODE / name, text)
    return changed


def _kept(folder: Path, file: OwnFile) -> set[str]:
    """Return the modules of a folder game that an earlier start has kept."""
    found = (folder / CODE / PurePath(file.path).name).rglob("*.py")
    return {str(path.relative_to(folder / CODE)) for path in found if "." not in path.stem}


def _typed(file: OwnFile, name: str) -> str:
    return os.path.join(os.path.dirname(file.typed), name)  # noqa: PTH118, PTH120 - `./` stays


def _put_aside(path: Path) -> Path:
    """Rename an earlier start's text with the next number: war.1.py is the first start's, war.2.py the second's."""
    number = 1 + len(list(path.parent.glob(f"{path.stem}.*{path.suffix}")))
    return path.replace(path.with_name(f"{path.stem}.{number}{path.suffix}"))


def _differs(path: Path, text: str) -> bool:
    return path.is_file() and path.read_text(encoding="utf-8", errors="replace") != text


@cache
def warn_of_changes(folder: Path) -> None:
    """Warn in a line about each named file that differs from the one a run was trained with."""
    for file in own_files.trusted():
        for name, text in _texts(file).items():
            path = folder / CODE / name
            if _differs(path, text):
                line = f"warning: {_typed(file, name)} has changed since {folder} was trained; see {path}"
                print(one_line(line), file=sys.stderr)


def _files_of(settings: RunSettings) -> Iterator[OwnFile]:
    """Yield the named files of the settings: the game's, and those that values or keys name."""
    if (game := packages.game_file(settings.game_name)) is not None:
        yield game
    yield from filter(None, map(own_files.find, own_files.paths_in(asdict(settings))))


def _texts(file: OwnFile) -> dict[str, str]:
    """Return the sources of a file or folder, by path below `code`."""
    top = PurePath(file.path).parent
    return {str(PurePath(path).relative_to(top)): text for path, text in file.sources.values()}


class _State(dict[str, Any]):
    """State in a checkpoint. A key that it lacks is the file's error, not a bug like other missing keys."""

    def __missing__(self, key: str) -> Any:
        raise ValueError(f"it lacks {key}")


def _in_any_folder(code: object) -> str:
    """Return the name of a class or function in a Python file without its folder, which differs between commands."""
    path, rest = own_files.parted(str(code)) or ("", str(code))
    return f"{PurePath(path).name}:{rest}"
