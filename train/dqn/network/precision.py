"""Number format of a network's hidden layers; everything else is float32."""

import torch


def learner_format(setting: str, device: torch.device) -> torch.dtype:
    """Return the learner's number format on this device for the setting `learner.precision`."""
    dtype: torch.dtype = fastest_format(device) if setting == "auto" else getattr(torch, setting)
    return dtype


def fastest_format(device: torch.device) -> torch.dtype:
    """Return the fastest format with native instructions on the device; players always use it.

    It is bfloat16 if the GPU, or the CPU by AVX512-BF16 or AMX, has it; emulation is many times slower than float32.
    """
    if device.type == "cuda":
        capable = torch.cuda.is_bf16_supported(including_emulation=False)
    else:
        capable = torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported()
    return torch.bfloat16 if capable else torch.float32
