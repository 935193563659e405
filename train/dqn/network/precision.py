"""The number format of a network's hidden layers; everything else is float32."""

from __future__ import annotations

import torch

from command.settings.checks import SettingsError


def learner_format(setting: str, device: torch.device) -> torch.dtype:
    """What `learner.precision` means for the learner on this device. Raises SettingsError for what it has not."""
    if setting == "float16" and device.type == "cpu":
        raise SettingsError("learner.precision", "float16 needs a CUDA device", "say auto, float32 or bfloat16")
    dtype: torch.dtype = fastest_format(device) if setting == "auto" else getattr(torch, setting)
    return dtype


def player_format(device: torch.device) -> torch.dtype:
    """What players on this device multiply in, whatever the learner does: they may sit on another kind of chip."""
    return fastest_format(device)


def fastest_format(device: torch.device) -> torch.dtype:
    """The fastest format that the device has instructions for.

    On CUDA bfloat16 where the chip has it, else float16; on a CPU bfloat16 only with AVX512-BF16 or AMX, because
    emulated it is many times slower than float32.
    """
    if device.type == "cuda":
        return torch.bfloat16 if torch.cuda.is_bf16_supported(including_emulation=False) else torch.float16
    capable = torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported()
    return torch.bfloat16 if capable else torch.float32


def described(setting: str, dtype: torch.dtype) -> str:
    """The format's name, and why `auto` did not find a better one."""
    name = str(dtype).removeprefix("torch.")
    return f"{name} (this GPU has no bfloat16)" if setting == "auto" and dtype == torch.float16 else name
