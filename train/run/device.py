"""Which device to compute on.

PyTorch is imported when one is asked for: tournaments of rule players need none.
"""

from __future__ import annotations

import logging
import re
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from command.settings.checks import SettingsError
from train.run.metrics import resources

if TYPE_CHECKING:
    import torch

    from train.settings.resolve import Machine

log = logging.getLogger("train")

_DRIVER = Path("/proc/driver/nvidia/version")  # there where a driver is loaded, and readable in a container


def this_machine() -> Machine:
    """The devices that this process may train on."""
    import torch

    from train.settings.resolve import Machine

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # an old driver; `choose_device` says so
        return Machine(torch.cuda.is_available(), resources.cpus())


def choose_device(setting: str) -> torch.device:
    """CUDA if there and usable, else the CPU, for `auto`; a GPU that is left out is said in the log.

    Raises SettingsError for a device that is not there, or not usable.
    """
    import torch

    if setting == "auto":
        device = torch.device("cuda")
        problem = problem_with(device)
        if problem and _driver():
            log.warning("no GPU is used: %s", problem)
        return torch.device("cpu") if problem else _prepared(device)
    try:
        device = torch.device(setting)
    except RuntimeError:
        raise SettingsError("device", f"auto, cpu, cuda or cuda:N, not {setting!r}") from None
    if device.type not in ("cpu", "cuda"):
        raise SettingsError("device", f"auto, cpu, cuda or cuda:N, not {setting!r}")
    problem = problem_with(device) if device.type == "cuda" else None
    if problem:
        raise SettingsError("device", f"PyTorch sees no {setting} it can use ({problem})", "say device=cpu")
    return _prepared(device) if device.type == "cuda" else device


def _prepared(device: torch.device) -> torch.device:
    """The GPU, as the one of this thread: graphs and events ask for the current one, whatever their tensors are on."""
    import torch

    torch.cuda.set_device(device.index or 0)
    # Sums over thousands of rows stay in float32, as on a CPU.
    torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = False
    torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False
    return device


def problem_with(device: torch.device) -> str | None:
    """Why a CUDA device cannot be computed on; None if it can."""
    import torch

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # an old driver, in four lines
        count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if (device.index or 0) < count:
        return _refusal(device)
    if count:
        return f"there are {count}, counted from 0"
    if torch.version.cuda is None:
        return "this PyTorch is built without CUDA"
    driver = _driver()
    if driver is None:
        return "no driver of NVIDIA's is loaded"
    return f"NVIDIA's driver {driver} does not serve this PyTorch, which wants CUDA {torch.version.cuda}"


def _refusal(device: torch.device) -> str | None:
    """The error of an addition on the device, if any: another job may have it, or it is too old for this PyTorch."""
    import torch

    try:
        torch.ones(1, device=device).add(1).cpu()
    except RuntimeError as error:
        return str(error).strip().partition("\n")[0]
    return None


def _driver() -> str | None:
    """The version of the driver that is loaded, if one is."""
    try:
        found = re.search(r"(\d+\.\d+(\.\d+)?)", _DRIVER.read_text())
    except OSError:
        return None
    return found[1] if found else "of unknown version"


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
