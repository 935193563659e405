"""Which device to compute on."""

from collections.abc import Sequence

import torch

from command.checks import SettingsError
from train.run import resources
from train.settings.door import Machine


def this_machine() -> Machine:
    """What this process may train on."""
    return Machine(torch.cuda.is_available(), resources.cpus())


def choose_device(setting: str) -> torch.device:
    """CUDA if there, else the CPU, for `auto`. Raises SettingsError for a device that is not there."""
    if setting == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(setting)
    except RuntimeError:
        raise SettingsError(f"device: auto, cpu, cuda or cuda:N, not {setting!r}") from None
    if device.type not in ("cpu", "cuda"):
        raise SettingsError(f"device: auto, cpu, cuda or cuda:N, not {setting!r}")
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise SettingsError(f"device: PyTorch sees no {setting}; say device=cpu")
    return device


def other_gpus(setting: str, names: Sequence[str], index: int) -> str:
    """A line for the log where GPUs are of different kinds, by name; empty where there is nothing to choose."""
    if len(set(names)) < 2:
        return ""
    others = ", ".join(f"device=cuda:{k} is {name}" for k, name in enumerate(names) if k != index)
    used = f"of {len(names)} GPUs of different kinds this run uses cuda:{index}, {names[index]}"
    return f"device={setting}: {used}; {others}"


def gpu_names() -> list[str]:
    """What PyTorch calls the GPUs that it sees, in its order."""
    return [torch.cuda.get_device_name(k) for k in range(torch.cuda.device_count())]
