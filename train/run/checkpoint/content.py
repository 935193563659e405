"""Checks of a checkpoint's content: finite numbers, and no more memory than the file's length."""

import zipfile
from typing import IO, Any

import torch

MOST_VALUES = 2_000_000  # other than tensors; shared values count each time
DEEPEST = 64  # nesting depth of dictionaries and lists


def check_archive(file: IO[bytes], nbytes: int) -> None:
    """Raise ValueError unless the rest of the file is an uncompressed archive, as `torch.save` writes.

    PyTorch's older format allocates as much as a number in the file says. The file position is restored.
    """
    at = file.tell()
    try:
        with zipfile.ZipFile(file) as archive:
            entries = archive.infolist()
    except (zipfile.BadZipFile, NotImplementedError):
        raise ValueError("not a PyTorch archive") from None
    finally:
        file.seek(at)
    if any(each.compress_type != zipfile.ZIP_STORED for each in entries):
        raise ValueError("compressed, which checkpoints are not")
    if sum(each.file_size for each in entries) > nbytes:
        raise ValueError("its parts exceed the file")


def check_state(state: Any) -> None:
    """Raise ValueError for tensors larger than their data in the file, and for too many values."""
    left = MOST_VALUES
    waiting = [(state, 0)]
    while waiting:
        value, depth = waiting.pop()
        left -= 1
        if left < 0 or depth > DEEPEST:
            raise ValueError("too many values or levels for a checkpoint")
        if isinstance(value, torch.Tensor):
            _check_tensor(value)
        elif isinstance(value, dict):
            waiting += [(item, depth + 1) for pair in value.items() for item in pair]
        elif isinstance(value, list | tuple | set | frozenset):
            waiting += [(item, depth + 1) for item in value]


def _check_tensor(tensor: torch.Tensor) -> None:
    plain = tensor.layout == torch.strided and tensor.device.type == "cpu"
    if not plain or tensor.numel() * tensor.element_size() > tensor.untyped_storage().nbytes():
        raise ValueError(f"a tensor of {tuple(tensor.shape)} is incomplete")


def not_finite(state: object, path: str = "") -> str | None:
    """Return the dotted path of the first floating-point tensor with NaN or infinity; None if there is none."""
    if isinstance(state, torch.Tensor):
        if not state.is_floating_point() or not state.numel():
            return None
        return None if all(bound.isfinite() for bound in state.aminmax()) else path  # aminmax propagates NaN
    if isinstance(state, dict):
        items = [(f"{path}.{key}".lstrip("."), item) for key, item in state.items()]
    elif isinstance(state, list | tuple):
        items = [(f"{path}.{index}", item) for index, item in enumerate(state)]
    else:
        return None
    return next((found for name, item in items if (found := not_finite(item, name))), None)
