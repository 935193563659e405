"""Malicious files as received from others: runs, checkpoints, champions, saves, records."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import yaml
from safetensors import safe_open
from safetensors.torch import save

from busso.command.settings.compose import settings_from_dict
from busso.train.players import champion_file as champion
from busso.train.run import checkpoint

Change = Callable[[dict[str, Any]], object]


def change_config(run: Path, change: Change) -> Path:
    """Change the settings in a run's config.yaml."""
    path = run / "config.yaml"
    settings = yaml.safe_load(path.read_text())
    change(settings)
    path.write_text(yaml.safe_dump(settings))
    return run


def change_checkpoints(run: Path, change: Change) -> Path:
    """Change the settings in all checkpoints of a run, and return the best one."""
    for path in run.glob("checkpoints/*.pt"):
        state = checkpoint.load(path)
        change(state["settings"])
        checkpoint.save(path, state)
    return run / "checkpoints" / checkpoint.BEST


def champion_of(run: Path, path: Path, change: Change) -> Path:
    """Write the best network of a run as a champion file with changed settings and a valid checksum."""

    state = checkpoint.load(run / "checkpoints" / checkpoint.BEST)
    settings = settings_from_dict(champion.TrainSettings, state["settings"])
    champion.write(path, settings, state["acting"], {"command": None})
    header, tensors = header_of(path)
    change(header["settings"])
    write_champion(path, header, tensors)
    return path


def header_of(path: Path) -> tuple[dict[str, Any], dict[str, torch.Tensor]]:
    """Return the header and tensors of a champion file."""
    with safe_open(path, framework="pt") as file:
        tensors = {name: file.get_tensor(name).clone() for name in file.keys()}  # noqa: SIM118 - it is no dictionary
        return json.loads(file.metadata()["busso"]), tensors


def write_champion(path: Path, header: dict[str, Any], tensors: dict[str, torch.Tensor]) -> None:
    """Write a champion file with this header and a matching checksum."""
    header = {key: value for key, value in header.items() if key != "sha256"}
    text = json.dumps(header | {"sha256": champion._digest(header, tensors)})
    path.write_bytes(save(tensors, {"busso": text}))


def table(game: dict[str, Any], seats: list[str]) -> dict[str, Any]:
    """Return a save of a table."""
    score = {"games": 0, "ties": 0, "wins": [0, 0], "totals": [0.0] * len(seats)}
    saved = {"format": "busso table", "version": 2, "game": game, "code": "", "seats": seats, "seed": 1, "match": None}
    return {**saved, "number": 0, "score": score, "hands": [[]]}
