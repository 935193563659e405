"""Sweeps, `busso train -m key=a,b`: run names, a check of all runs before the first, and signals."""

import hashlib
import itertools
import multiprocessing
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import cache, partial
from pathlib import Path
from typing import cast

from hydra.core.config_store import ConfigStore
from hydra.core.global_hydra import GlobalHydra
from hydra.core.hydra_config import HydraConfig
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override
from hydra.core.plugins import Plugins
from omegaconf import DictConfig, OmegaConf, open_dict

from busso.base.errors import EXIT_REQUEUE
from busso.base.lock import restarts
from busso.base.system import end_with_parent, heard
from busso.command.app import CommandEnd, added_folders
from busso.command.settings.checks import SettingsError, require
from busso.command.settings.compose import refused_by_name
from busso.command.settings.text import as_typed
from busso.train.run.signals import StopRequest

Job = Sequence[str]  # overrides of a run
Check = Callable[[DictConfig, Job, str], object]
_NAME, _DEFAULT_NAME, _MAX_NAME = "name", "default", 240  # bytes, below the limit of 255
_EXCLUDED = "hydra.job.config.override_dirname.exclude_keys"
_SUBMITIT, _ARRAY = "submitit", "array"
_LAUNCHERS = {"submitit_slurm": {"max_num_timeout": 1000}, "submitit_local": {"timeout_min": 30 * 24 * 60}}

until_end = ExitStack()  # cleanup of a sweep in this process, run at the end of the command
_stopped: int | None = None  # exit code of the signal received by a job of this process
_told = list[int]()  # signals already relayed to joblib's workers


def sweep_name(name: object, swept: str) -> str:
    """Return a sweep's run name, such as `wide,learner.lr=0.001,seed=2`: the given name, then the values.

    `swept` is Hydra's override_dirname. A value of `row` appears without its key.
    """
    values = re.sub(r"\d+\.\d{6,}(e-?\d+)?", lambda found: f"{float(found[0]):.6g}", re.sub(r"\brow=", "", swept))
    values = re.sub(r"(?<==)(?:[^,=]*/)?([^,=/]+)\.py\b", r"\1", values)  # a Python file by its stem
    text = ",".join(part for part in ("" if name == _DEFAULT_NAME else f"{name}", values) if part) or f"{name}"
    plain = re.sub(r"[^A-Za-z0-9._=,+-]+", "_", re.sub(r"[\[\]{}()'\" ]", "", text))
    if len(plain) <= _MAX_NAME:
        return plain
    return f"{plain[: _MAX_NAME - 9]},{hashlib.sha256(text.encode()).hexdigest()[:8]}"


OmegaConf.register_new_resolver("sweep_name", sweep_name, replace=True)


def set_up_launchers() -> None:
    """Make submitit requeue a job whenever it reaches its time limit: it resumes from its checkpoint."""
    Plugins.instance()  # plugins store their settings when Hydra discovers them
    store = ConfigStore.instance()
    for name in _LAUNCHERS.keys() & {each.removesuffix(".yaml") for each in store.list("hydra/launcher")}:
        node = OmegaConf.merge(store.load(f"hydra/launcher/{name}.yaml").node, _LAUNCHERS[name])
        store.store(group="hydra/launcher", name=name, node=node, provider="busso")


def prepare(config: DictConfig, check: Check) -> list[str]:
    """Name the runs of a sweep by the swept keys, check all combinations of a grid, and handle signals.

    Return the run folders of a grid that this command trains itself. `check` receives the settings of a run, its
    overrides and its folder. Raises SettingsError.
    """
    global _stopped  # noqa: PLW0603 - process-wide, like signals
    _stopped = None
    _told.clear()
    # As typed: `name='lr${learner.lr}'` differs between runs.
    typed = cast("list[str]", OmegaConf.to_container(config.hydra.overrides.task, resolve=False))
    sweeper, launcher = (config.hydra.runtime.choices[f"hydra/{name}"] for name in ("sweeper", "launcher"))
    refused = partial(refused_by_name, typed, "train", added_folders(config.hydra))
    with refused():
        overrides = OverridesParser.create(GlobalHydra.instance().config_loader()).parse_overrides(typed)
        fixed = {each.key_or_group for each in overrides if not each.is_sweep_override()} | {_NAME}
        config.hydra.overrides.hydra.append(f"{_EXCLUDED}={sorted(fixed)}")
        grid = _grid(config, overrides) if sweeper == "basic" else {}
    if launcher == _ARRAY:
        require(sweeper == "basic", "hydra/sweeper", f"basic with hydra/launcher={_ARRAY}", sweeper)
        grid = _of_array(config, grid)
    with refused():
        if sweeper == "basic":
            jobs = _checked(config, grid, check)
        else:  # settings common to all jobs of a search
            same = [text for each, text in zip(overrides, typed, strict=True) if not each.is_sweep_override()]
            composed = GlobalHydra.instance().config_loader().load_sweep_config(config, same)
            check(composed, same, f"{composed.hydra.sweep.dir}/search")
    if launcher == _ARRAY and "SLURM_ARRAY_TASK_ID" not in os.environ:
        print("\n".join(jobs))
        raise CommandEnd
    if launcher == _ARRAY:
        (config.hydra.overrides.task,) = jobs.values()
        config.hydra.sweeper.params = None
    elif launcher.startswith(_SUBMITIT):
        _make_private(str(config.hydra.launcher.submitit_folder))
        until_end.enter_context(_relayed({signal.SIGINT, signal.SIGUSR1, signal.SIGHUP}, _leave))
        if launcher == "submitit_slurm":
            _leave_allocation()
    elif launcher == "joblib":
        until_end.enter_context(_relayed(set(StopRequest.SIGNALS), _tell_workers))
    return list(jobs) if sweeper == "basic" and launcher in ("basic", "joblib") else []


def _grid(config: DictConfig, overrides: list[Override]) -> dict[int, Job]:
    """Return the overrides of each combination, by number. Raises SettingsError."""
    params = as_typed([f"{key}={value}" for key, value in (config.hydra.sweeper.params or {}).items()])
    config.hydra.sweeper.params = {key: value for key, _, value in (each.partition("=") for each in params)}
    parsed = OverridesParser.create(GlobalHydra.instance().config_loader()).parse_overrides(params)
    return dict(enumerate(itertools.product(*_values_by_key([*parsed, *overrides]))))


def _of_array(config: DictConfig, grid: dict[int, Job]) -> dict[int, Job]:
    """Return the combination of this Slurm array task, by its number from 0; outside an array, all.

    The number is that of the task, plus `hydra.launcher.offset`. Raises SettingsError if the array exceeds the grid.
    """
    with open_dict(config):
        offset = config.hydra.launcher.pop("offset")
    require(isinstance(offset, int) and offset >= 0, "hydra.launcher.offset", "an integer from 0", offset)
    task, last = (os.environ.get(f"SLURM_ARRAY_TASK_{name}", "") for name in ("ID", "MAX"))
    if (most := offset + int(last or task or 0)) >= len(grid):
        problem = f"the sweep has {len(grid)} combinations, 0 to {len(grid) - 1}, but the array goes to {most}"
        raise SettingsError("--array", problem, f"submit with --array=0-{max(0, len(grid) - 1 - offset)} or a subset")
    return {offset + int(task): grid[offset + int(task)]} if task else grid


def _checked(config: DictConfig, grid: Mapping[int, Job], check: Check) -> dict[str, Job]:
    """Check the runs of a grid, given by number, and return their overrides by folder."""
    loader = GlobalHydra.instance().config_loader()
    found = dict[str, Job]()
    for number, job in grid.items():
        composed = loader.load_sweep_config(config, list(job))
        with open_dict(composed):
            composed.hydra.job.id = composed.hydra.job.num = number
        folder = str(Path(str(composed.hydra.sweep.dir), str(composed.hydra.sweep.subdir)))
        check(composed, job, folder)
        require(folder not in found, "--multirun", "a folder of its own for each combination", folder)
        found[folder] = job
    return found


def _values_by_key(overrides: Sequence[Override]) -> list[list[str]]:
    """Return the overrides with each value of each key, of which the sweeper runs the product. Raises SettingsError."""
    found = dict[str, list[str]]()
    for each in overrides:
        key = each.get_key_element()
        if not each.is_sweep_override():
            found[key] = [f"{key}={each.get_value_element_as_str()}"]
        elif each.is_discrete_sweep():
            found[key] = [f"{key}={value}" for value in each.sweep_string_iterator()]
        else:
            raise SettingsError(each.key_or_group, "an interval is not a list of values", "write values, as in a,b,c")
    return list(found.values())


def _make_private(pattern: str) -> None:
    """Create the private folder of submitit's pickles, which can run any code, or raise SettingsError.

    The path from the first `%` on differs between jobs.
    """
    folder = Path(*itertools.takewhile(lambda part: "%" not in part, Path(pattern).parts))
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = folder.stat()
    if found.st_uid != os.getuid() or found.st_mode & 0o022:
        raise SettingsError(
            "hydra.launcher.submitit_folder", f"{folder} is writable by other users", "choose a private folder"
        )


def _leave_allocation() -> None:
    """Remove Slurm's variables until the end: sbatch would pass them on to jobs, where srun reads them."""
    of_allocation = [name for name in os.environ if re.match(r"SLURM_(?!(CONF|JWT|CLUSTERS|SACK_SOCKET)$)", name)]
    until_end.callback(os.environ.update, {name: os.environ.pop(name) for name in of_allocation})


@contextmanager
def _relayed(numbers: set[signal.Signals], hear: Callable[[int], None]) -> Iterator[None]:
    """Call `hear` for each of these signals; child processes hold them back until their job begins.

    This thread therefore blocks them, and another thread, which starts no processes, receives them.
    """
    numbers = set(heard(numbers))
    handlers = {number: signal.signal(number, lambda number, _: hear(number)) for number in numbers}
    ended = threading.Event()
    mask = signal.pthread_sigmask(signal.SIG_UNBLOCK, numbers)
    threading.Thread(target=ended.wait, daemon=True).start()
    signal.pthread_sigmask(signal.SIG_BLOCK, numbers)
    try:
        yield
    finally:
        ended.set()
        for number, handler in handlers.items():
            signal.signal(number, handler)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)


def _leave(number: int) -> None:
    """Exit; the submitted jobs continue."""
    os.write(2, b"\nthe jobs continue without this command\n")
    os._exit(_exit_code(number))


def _tell_workers(number: int) -> None:
    """Relay a signal to joblib's workers, each of which stops with a checkpoint.

    A terminal sends Ctrl-C to them as well; the second one ends this process, and them with it.
    """
    workers = multiprocessing.active_children()
    if not workers or (number == signal.SIGINT and _told):
        os._exit(_exit_code(number))
    _told.append(number)
    for worker in workers if number != signal.SIGINT else ():
        with suppress(ProcessLookupError):  # already ended
            os.kill(worker.pid or 0, number)


def _exit_code(number: int) -> int:
    return EXIT_REQUEUE if number == signal.SIGUSR1 else 128 + number


def in_sweep(train: Callable[[], int]) -> int:
    """Train the run of a job and return its exit code; after a signal, this process trains no others.

    A run that another process holds is skipped, except in a job array, whose task may be requeued.
    """
    global _stopped  # noqa: PLW0603
    hydra = HydraConfig.get()
    launcher = str(hydra.runtime.choices["hydra/launcher"])
    if launcher == "joblib" and not end_with_parent(_parent(), signal.SIGTERM):
        os._exit(_exit_code(signal.SIGTERM))
    with StopRequest() as stop:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, StopRequest.SIGNALS)  # deliver pending signals
        again = hydra.job.num > 0 or not restarts()  # else a job that is too short is requeued forever
        code = _stopped or (stop.exit_code(again) if stop.signal is not None else 0)
        if not code:
            code = _trained(train, stop, launcher)
    if stop.signal is not None:
        _stopped = code or stop.exit_code(again=True)
    if launcher == "joblib" and os.getppid() != _parent():
        os._exit(code)  # no process waits for the result
    return code


def _trained(train: Callable[[], int], stop: StopRequest, launcher: str) -> int:
    from busso.train.run.folder import RunInUseError  # imports PyTorch, which --help does not need

    try:
        return _requeued_after(train) if launcher.startswith(_SUBMITIT) else train()
    except RunInUseError as error:
        if stop.signal is not None:
            return stop.exit_code(again=True)  # the signal ended the wait
        if launcher == "array" or HydraConfig.get().runtime.choices["hydra/sweeper"] != "basic":
            raise
        print(f"another process is training this run: {error}", file=sys.stderr)
        return 0


@cache
def _parent() -> int:
    """Return the parent of this joblib worker at the first call."""
    return os.getppid()


def _requeued_after(train: Callable[[], int]) -> int:
    """Train, and requeue the job after the checkpoint at submitit's signal or if Slurm would not after a preemption."""
    came = list[int]()

    def stop(number: int, frame: object) -> None:
        came.append(number)
        signal.raise_signal(signal.SIGUSR1)

    requeue = signal.signal(signal.SIGUSR2, stop)
    try:
        code = train()
    finally:
        signal.signal(signal.SIGUSR2, requeue)
    if code and (came or (code == _exit_code(signal.SIGTERM) and lost_by_slurm())):
        signal.raise_signal(signal.SIGUSR2)
    return code


def lost_by_slurm() -> bool:
    """Return whether this job is being preempted by a Slurm before 24.05.

    Slurm sends SIGTERM to its step at the start of the grace time, and takes an end within it for the job's own.
    """
    if os.environ.get("SUBMITIT_EXECUTOR") != "slurm":
        return False
    from submitit import JobEnvironment  # an extra, like its launcher

    ask = partial(subprocess.run, check=False, capture_output=True, text=True)
    record = ask(["scontrol", "--oneliner", "show", "job", JobEnvironment().job_id]).stdout
    version = re.search(r"(\d+)\.(\d+)", ask(["scontrol", "--version"]).stdout)
    old = version is not None and (int(version[1]), int(version[2])) < (24, 5)
    running = "JobState=RUNNING " in record and " Requeue=1 " in record
    return old and running and re.search(r" PreemptTime=\d", record) is not None
