"""Choice of the device, and error messages about a missing, unusable or failing GPU."""

from __future__ import annotations

import logging
import os
import re
import socket
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from busso.base.errors import EXIT_REQUEUE, UserError
from busso.command.settings.checks import SettingsError

if TYPE_CHECKING:
    import torch

_DRIVER = Path("/proc/driver/nvidia/version")  # exists if a driver is loaded, also in containers
_HIDDEN = ("", "-1", "NoDevFiles")  # values of CUDA_VISIBLE_DEVICES that hide all GPUs
_HOST = os.environ.get("SLURMD_NODENAME") or socket.gethostname()
_ON_CPU = "use device=cpu for the CPU"
# Errors of PyTorch, cuBLAS, cuDNN and Triton. Lack of GPU memory is excluded: settings cause it.
_SIGNS = r"CUDA error|CUDA driver error|CUDNN_STATUS_|CUBLAS_STATUS_|Triton Error \[CUDA\]"
_FAILURE = re.compile(rf"(?s)(?!.*(out of memory|ALLOC_FAILED)).*({_SIGNS})")


class Build(NamedTuple):
    """PyTorch wheel and its requirements; docs/howto/cluster_install.md has the same table."""

    name: str  # name of its index at download.pytorch.org/whl and suffix of its versions: 2.13.0+cu126
    driver: str  # oldest driver; it supports every minor version of the same CUDA
    oldest: tuple[int, int]  # oldest compute capability of the GPUs
    newest: tuple[int, int]


# Wheels of torch 2.11 to 2.14, newest first: https://github.com/pytorch/pytorch/blob/main/RELEASE.md and
# https://docs.nvidia.com/deploy/cuda-compatibility/minor-version-compatibility.html
BUILDS = (Build("cu130", "580.65.06", (7, 5), (12, 1)), Build("cu126", "525.60.13", (5, 0), (9, 0)))


class Problem(NamedTuple):
    """Reason why a CUDA device cannot be used."""

    text: str
    hint: str
    absent: bool = False  # this process sees no sign of a GPU, so `auto` is the CPU


def choose_device(setting: str, began_on_gpu: bool = False) -> torch.device:
    """Return the device of a setting; `auto` is CUDA, or the CPU if there is no GPU.

    Raises SettingsError if it cannot be used; for `auto` only if the machine or job has a GPU, or the run began on one.
    """
    import torch

    if not re.fullmatch(r"auto|cpu|cuda(:(0|[1-9]\d?))?", setting):
        raise SettingsError("device", f"expected auto, cpu, cuda or cuda:N, not {setting!r}")
    if setting == "cpu":
        return torch.device("cpu")
    device = torch.device("cuda" if setting == "auto" else setting)
    if problem := problem_with(device.index or 0):
        why = f"{setting} is requested" if setting != "auto" else _why_on_gpu(problem, began_on_gpu)
        if why is None:
            return torch.device("cpu")
        raise SettingsError("device", f"{why}, but it cannot be used on {_HOST}: {problem.text}", problem.hint)
    torch.cuda.set_device(device.index or 0)
    # Compute in full float32 as on a CPU, even if a container sets TORCH_ALLOW_TF32_CUBLAS_OVERRIDE.
    torch.set_float32_matmul_precision("highest")
    torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = False
    return device


def _why_on_gpu(problem: Problem, began_on_gpu: bool) -> str | None:
    """Return why `auto` may not fall back to the CPU despite a GPU problem; None if it may."""
    if began_on_gpu:
        return "this run began on a GPU"
    if "SLURM_JOB_ID" in os.environ:
        return "this job was given a GPU" if _job_has_gpus() else None
    return None if problem.absent else "this machine has a GPU"


def _job_has_gpus() -> bool:
    """Return whether Slurm gave this job GPUs that are not hidden."""
    if (visible := os.environ.get("CUDA_VISIBLE_DEVICES")) is not None:
        return visible.strip() not in _HIDDEN
    numbers = any(os.environ.get(name) for name in ("SLURM_JOB_GPUS", "SLURM_STEP_GPUS"))  # for example 0,1
    return numbers or os.environ.get("SLURM_GPUS_ON_NODE", "0") != "0"


def problem_with(index: int = 0) -> Problem | None:
    """Return why CUDA device `index` cannot be used, None if it can. Tries an addition on it."""
    import torch

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about an old driver, in four lines
        count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if index < count:
        return _refusal(index)
    if count:
        return Problem(f"this machine has {count}, counted from 0", f"use device=cuda:{count - 1} or cpu")
    return _lack()


def _lack() -> Problem:
    """Return why PyTorch sees no GPU."""
    import torch

    built, driver = torch.version.cuda, driver_version()
    if os.environ.get("CUDA_VISIBLE_DEVICES", "0").strip() in _HIDDEN:
        return Problem("CUDA_VISIBLE_DEVICES hides all GPUs", _ON_CPU, absent=True)
    if built is None:
        return Problem(f"torch {torch.__version__} was built without CUDA", _way_out(driver), absent=True)
    needed = next((each.driver for each in BUILDS if each.name[2:4] == built.partition(".")[0]), None)
    if driver and needed and _numbers(driver) < _numbers(needed):
        text = f"its driver {driver} is older than {needed}, which CUDA {built} of torch {torch.__version__} needs"
        return Problem(text, _way_out(driver))
    text = f"PyTorch sees no GPU with driver {driver}" if driver else "the NVIDIA driver is not loaded"
    return Problem(text, _elsewhere(), absent=True)


def _refusal(index: int) -> Problem | None:
    """Try an addition on a GPU; return the reason if it fails."""
    import torch

    try:
        torch.ones(1, device=torch.device("cuda", index)).add(1).cpu()
        return None
    except RuntimeError as error:
        text = str(error).strip().partition("\n")[0]
    if "no kernel image" in text:
        name, (major, minor) = torch.cuda.get_device_name(index), torch.cuda.get_device_capability(index)
        text = f"torch {torch.__version__} has no code for {name} (sm_{major}{minor})"
        return Problem(text, _way_out(driver_version(), (major, minor)))
    if "busy or unavailable" in text:
        text = f"cuda:{index} is in exclusive use by another process ({text})"
    elif "out of memory" in text:
        text = f"cuda:{index} has too little free memory to start CUDA ({text})"
    else:
        return Problem(text, _elsewhere())
    return Problem(text, f"check nvidia-smi; wait, or use device=cuda:N for another GPU; {_elsewhere()}")


def _way_out(driver: str | None, capability: tuple[int, int] | None = None) -> str:
    """Return the command that installs a suitable build for the driver and GPU, or else what is needed."""
    import torch

    suits = [each for each in BUILDS if capability is None or each.oldest <= capability <= each.newest]
    runs = [each for each in suits if driver is None or _numbers(driver) >= _numbers(each.driver)]
    if runs:
        version = f"torch=={torch.__version__.partition('+')[0]}+{runs[0].name}"
        return f"pip install {version} --index-url https://download.pytorch.org/whl/{runs[0].name}; or {_ON_CPU}"
    return f"{f'a driver of {suits[-1].driver} or later is needed' if suits else 'no wheel runs on it'}; {_ON_CPU}"


def _elsewhere() -> str:
    """Return the hint for a problem of this node."""
    return _ON_CPU + (f"; sbatch --exclude={_HOST} keeps a job off it" if "SLURM_JOB_ID" in os.environ else "")


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(each) for each in version.split("."))


def driver_version() -> str | None:
    """Return the version of the loaded NVIDIA driver, None without one."""
    found = re.search(r"\d+(\.\d+)+", _DRIVER.read_text()) if _DRIVER.exists() else None
    return found and found[0]


@contextmanager
def told(run: Path) -> Iterator[None]:
    """Convert a GPU failure into a one-line error, whose exit code requests a restart after a new checkpoint."""
    from busso.train.run.launches import checkpoints_of

    before = checkpoints_of(run)
    try:
        yield
    except Exception as error:
        failure = failure_in(error)
        if failure is None:
            raise
        logging.getLogger("train").info("the GPU failed", exc_info=error)
        found = checkpoints_of(run)
        stands = f"the last checkpoint is {found[0]}" if found else "no checkpoint had been written"
        text = str(failure).strip().partition("\n")[0]
        again = f"the same command resumes; {_elsewhere()}"
        line = UserError("device", f"the GPU failed on {_HOST} ({text}); {stands}", again)
        line.exit_code = EXIT_REQUEUE if set(found) - set(before) else 1
        raise line from error


def failure_in(error: BaseException | None) -> BaseException | None:
    """Return the GPU failure that caused an error, the first in its chain of causes; None without one."""
    if error is None:
        return None
    failed = _FAILURE.match(str(error)) and not isinstance(error, UserError)
    return failure_in(error.__cause__ or error.__context__) or (error if failed else None)
