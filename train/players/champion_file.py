"""Champion files: a network, and the settings that build it, in one file that is read without running code.

The format is safetensors. Its metadata has, as JSON under `busso`: the version of busso, the settings that shape the
network, a checksum of the weights, and facts about its training (`about`). Weights are named `0.NAME`.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from busso.base.files import write_atomic
from busso.command.settings.compose import settings_from_dict
from busso.command.settings.untrusted import read_json
from busso.train.network.build import check_size
from busso.train.run.checkpoint import CheckpointError, not_finite
from busso.train.settings.dqn import TrainSettings
from busso.version import __version__

SUFFIX = ".safetensors"
_FORMAT = 1
_KEY = "busso"
_PREFIX = "0."  # of the names of weights
_SHAPING = ("game", "network")  # groups of settings; the others concern training and name local files

Weights = dict[str, Tensor]


@dataclass(frozen=True)
class Champion:
    """Content of a file: the weights of the network, the settings that build it, and facts about it."""

    settings: TrainSettings
    weights: Weights
    about: dict[str, Any]
    version: str


def write(
    path: Path,
    settings: TrainSettings,
    weights: Weights,
    about: Mapping[str, Any],
    version: str = __version__,
) -> None:
    """Write the network atomically with weights in bfloat16, creating the folder."""
    tensors = {_PREFIX + name: _as(value.cpu(), torch.bfloat16).contiguous().clone() for name, value in weights.items()}
    header = {"format": _FORMAT, "version": version, "settings": shaping(settings), "about": dict(about)}
    text = json.dumps(header | {"sha256": _digest(header, tensors)})
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomic(path, save(tensors, {_KEY: text}))


def shaping(settings: TrainSettings) -> dict[str, Any]:
    """Return the settings stored in a file: those that build its network."""
    kept = {key: asdict(settings)[key] for key in _SHAPING}
    return kept | {"network": kept["network"] | {"init_from": None}}


def read(path: Path) -> Champion:
    """Read a file. Raises CheckpointError if it is missing, damaged or not a champion."""
    try:
        with safe_open(path, framework="pt") as file:
            header = read_json((file.metadata() or {})[_KEY])
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - not a dictionary
        if header["format"] != _FORMAT:
            problem = f"format {header['format']} of a newer busso; this one reads {_FORMAT}"
            raise CheckpointError(path, problem)
        if header.pop("sha256") != _digest(header, tensors):
            raise CheckpointError(path, "damaged (its checksum does not match)")
        settings = settings_from_dict(TrainSettings, header["settings"] | {"device": "cpu"})
        weights = _weights(tensors)
        _check_about(header)
    except OSError as error:
        raise CheckpointError(path, f"cannot be read ({error.strerror or error})") from None
    except SafetensorError as error:
        raise CheckpointError(path, f"damaged or not a safetensors file ({_line(error)})") from None
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        if isinstance(error, CheckpointError):
            raise
        raise CheckpointError(path, f"not a network of busso ({_line(error)})") from None
    bad = not_finite(weights)
    if not weights or bad is not None:
        raise CheckpointError(path, f"{bad} is not finite" if bad else "contains no weights")
    check_size(settings, weights, path)
    return Champion(settings, weights, header["about"], header["version"])


def _check_about(header: Mapping[str, Any]) -> None:
    """Raise ValueError if the file's description of its training is malformed."""
    about = header["about"]
    numbers = [*(about.get("decisions") or []), about.get("hours") or 0]
    texts = [header["version"], *(about.get(key) or "" for key in ("command", "commit", "limits", "reward"))]
    plain = all(isinstance(text, str) for text in texts)
    if not plain or not all(isinstance(number, int | float) for number in numbers):
        raise ValueError("its description of the training is malformed")


def _weights(tensors: Mapping[str, Tensor]) -> Weights:
    """Return the weights by their names in the network. Raises ValueError for a tensor without the prefix."""
    if other := next((name for name in tensors if not name.startswith(_PREFIX)), None):
        raise ValueError(f"tensor {other}, whose name does not begin with {_PREFIX}")
    return {name.removeprefix(_PREFIX): _as(tensor, torch.float32) for name, tensor in tensors.items()}


def _as(tensor: Tensor, dtype: torch.dtype) -> Tensor:
    """Convert a floating-point tensor; integers, which the user's own networks may have, stay unchanged."""
    return tensor.to(dtype) if tensor.is_floating_point() else tensor


def _digest(header: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> str:
    """Return the checksum of a file's content: safetensors has none, and would load a flipped bit."""
    digest = hashlib.sha256(json.dumps(header, sort_keys=True).encode())
    for name in sorted(tensors):
        value = tensors[name]
        digest.update(f"{name} {value.dtype} {tuple(value.shape)}\n".encode())
        digest.update(value.reshape(-1).view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()


def _line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
