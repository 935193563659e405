"""The number format of a network's hidden layers; everything else is float32."""

from __future__ import annotations

import torch


def learner_format(setting: str, device: torch.device) -> torch.dtype:
    """Return the number format of `learner.precision` for the learner on this device."""
    dtype: torch.dtype = fastest_format(device) if setting == "auto" else getattr(torch, setting)
    return dtype


def fastest_format(device: torch.device) -> torch.dtype:
    """The fastest format that the device has instructions for; players multiply in it, whatever the learner does.

    That is bfloat16 where the chip has it, on a CPU by AVX512-BF16 or AMX: emulated it is many times slower than
    float32.
    """
    if device.type == "cuda":
        capable = torch.cuda.is_bf16_supported(including_emulation=False)
    else:
        capable = torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported()
    return torch.bfloat16 if capable else torch.float32
