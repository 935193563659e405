"""The device to compute on.

PyTorch is imported when a device is needed: tournaments of rule players need none.
"""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from command.settings.checks import SettingsError
from train.run.metrics import resources

if TYPE_CHECKING:
    import torch

    from train.settings.resolve import Machine

_DRIVER = Path("/proc/driver/nvidia/version")  # there where a driver is loaded, and readable in a container
_HIDDEN = ("", "-1", "NoDevFiles")  # values of CUDA_VISIBLE_DEVICES that leave no GPU
_ON_CPU = "device=cpu computes on the CPU"


@dataclass(frozen=True)
class Build:
    """A kind of wheel of PyTorch, and where it runs; docs/howto/cluster_install.md has the same table."""

    name: str  # of its index at download.pytorch.org/whl, and of its versions: 2.13.0+cu126
    driver: str  # the oldest; it runs every minor version of the same CUDA
    oldest: tuple[int, int]  # compute capability of the GPUs
    newest: tuple[int, int]


# Newest first, those of torch 2.11 to 2.14: https://github.com/pytorch/pytorch/blob/main/RELEASE.md and
# https://docs.nvidia.com/deploy/cuda-compatibility/minor-version-compatibility.html
BUILDS = (Build("cu130", "580.65.06", (7, 5), (12, 1)), Build("cu126", "525.60.13", (5, 0), (9, 0)))


@dataclass(frozen=True)
class Problem:
    """Why a CUDA device cannot be computed on."""

    text: str
    hint: str = _ON_CPU
    absent: bool = False  # no GPU was asked for, as far as this process can see: `auto` is the CPU
    everywhere: bool = False  # PyTorch is the cause, and on another node it is the same


def this_machine() -> Machine:
    """The devices that this process may train on; whether a GPU is one of them is asked when it matters, once."""
    from train.settings.resolve import Machine

    problem_with.cache_clear()  # a later run of the same process asks anew
    return Machine(lambda: problem_with() is None, resources.cpus())


def choose_device(setting: str) -> torch.device:
    """The device of a setting: for `auto` CUDA, or the CPU where there is no GPU.

    Raises SettingsError for a device that is not there, or not usable; for `auto` if there ought to be a GPU.
    """
    import torch

    if setting == "auto":
        problem = problem_with()
        if problem and (why := why_on_gpu(problem)):
            raise SettingsError("device", f"{why}, but {problem.text}", problem.hint)
        return torch.device("cpu") if problem else _prepared(torch.device("cuda"))
    try:
        device = torch.device(setting)
    except RuntimeError:
        raise SettingsError("device", f"auto, cpu, cuda or cuda:N, not {setting!r}") from None
    if device.type not in ("cpu", "cuda"):
        raise SettingsError("device", f"auto, cpu, cuda or cuda:N, not {setting!r}")
    problem = problem_with(device.index or 0) if device.type == "cuda" else None
    if problem:
        raise SettingsError("device", f"PyTorch sees no {setting} it can use: {problem.text}", problem.hint)
    return _prepared(device) if device.type == "cuda" else device


def _prepared(device: torch.device) -> torch.device:
    """The GPU, as the one of this thread: graphs and events ask for the current one, whatever their tensors are on."""
    import torch

    torch.cuda.set_device(device.index or 0)
    # Products of float32 are float32, also where a container sets TORCH_ALLOW_TF32_CUBLAS_OVERRIDE, as NVIDIA's do.
    torch.set_float32_matmul_precision("highest")
    # Sums over thousands of rows stay in float32, as on a CPU.
    torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = False
    torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False
    return device


def why_on_gpu(problem: Problem) -> str | None:
    """Why `auto` is no CPU although there is a problem with the GPU; None where it is."""
    if "SLURM_JOB_ID" in os.environ:
        return "this job was given a GPU" if _job_has_gpus() else None
    return None if problem.absent else "this machine has a GPU"


def _job_has_gpus() -> bool:
    """Whether Slurm has given GPUs to the job of this process, and they are not hidden."""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is not None:
        return visible.strip() not in _HIDDEN
    numbers = any(os.environ.get(name) for name in ("SLURM_JOB_GPUS", "SLURM_STEP_GPUS"))  # such as 0,1
    return numbers or os.environ.get("SLURM_GPUS_ON_NODE", "0") != "0"


@cache
def problem_with(index: int = 0) -> Problem | None:
    """Why CUDA device `index` cannot be computed on; None if it can.

    The one question that decides settings, device and what doctor says. A GPU that is there adds two numbers.
    """
    import torch

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # an old driver, in four lines
        count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if index < count:
        return _refusal(index)
    if count:
        return Problem(f"there are {count}, counted from 0", f"say device=cuda:{count - 1}, or device=cpu")
    return _lack()


def _lack() -> Problem:
    """Why PyTorch sees no GPU at all."""
    import torch

    built, driver = torch.version.cuda, driver_version()
    if os.environ.get("CUDA_VISIBLE_DEVICES", "0").strip() in _HIDDEN:
        return Problem("CUDA_VISIBLE_DEVICES hides all GPUs", absent=True)
    if built is None:
        text = f"torch {torch.__version__} is built without CUDA"
        return Problem(text, _way_out(driver), absent=True, everywhere=True)
    if driver is None:
        return Problem("no driver of NVIDIA's is loaded", absent=True)
    needed = next((each.driver for each in BUILDS if each.name[2:4] == built.partition(".")[0]), None)
    if needed and _numbers(driver) < _numbers(needed):
        text = f"its driver {driver} is older than {needed}, which CUDA {built} of torch {torch.__version__} needs"
        return Problem(text, _way_out(driver), everywhere=True)
    return Problem(f"driver {driver} shows no GPU to PyTorch", absent=True)


def _refusal(index: int) -> Problem | None:
    """What comes between a GPU that is there and an addition on it."""
    import torch

    try:
        torch.ones(1, device=torch.device("cuda", index)).add(1).cpu()
    except RuntimeError as error:
        text = str(error).strip().partition("\n")[0]
    else:
        return None
    if "no kernel image" in text:
        major, minor = torch.cuda.get_device_capability(index)
        lacks = f"torch {torch.__version__} has no code for {torch.cuda.get_device_name(index)} (sm_{major}{minor})"
        return Problem(lacks, _way_out(driver_version(), (major, minor)), everywhere=True)
    another = f"see nvidia-smi; wait, or say device=cuda:N for another GPU; {_ON_CPU}"
    if "busy or unavailable" in text:
        return Problem(f"cuda:{index} is busy, in exclusive mode with another process ({text})", another)
    if "out of memory" in text:
        return Problem(f"cuda:{index} has too little free memory to start CUDA ({text})", another)
    return Problem(text)


def _way_out(driver: str | None, capability: tuple[int, int] | None = None) -> str:
    """The command that installs the build for a driver, and for a GPU if it is known; without one, what is needed."""
    import torch

    suits = [each for each in BUILDS if capability is None or each.oldest <= capability <= each.newest]
    runs = [each for each in suits if driver is None or _numbers(driver) >= _numbers(each.driver)]
    if runs:
        version = f"torch=={torch.__version__.partition('+')[0]}+{runs[0].name}"
        return f"pip install {version} --index-url https://download.pytorch.org/whl/{runs[0].name}; or {_ON_CPU}"
    return f"{f'a driver of {suits[-1].driver} or later is needed' if suits else 'no wheel runs on it'}; {_ON_CPU}"


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(each) for each in version.split("."))


def driver_version() -> str | None:
    """The version of NVIDIA's driver that is loaded, if one is."""
    try:
        found = re.search(r"\d+(\.\d+)+", _DRIVER.read_text())
    except OSError:
        return None
    return found and found[0]


def other_gpus(setting: str, names: Sequence[str], index: int) -> str:
    """A line for the log where GPUs are of different kinds, by name; empty where there is nothing to choose."""
    if len(set(names)) < 2:
        return ""
    others = ", ".join(f"device=cuda:{k} is {name}" for k, name in enumerate(names) if k != index)
    used = f"of {len(names)} GPUs of different kinds this run uses cuda:{index}, {names[index]}"
    return f"device={setting}: {used}; {others}"


def gpu_names() -> list[str]:
    """The names of the GPUs that PyTorch sees, in its order."""
    import torch

    return [torch.cuda.get_device_name(k) for k in range(torch.cuda.device_count())]
