"""A network as an ONNX file; its metadata has all that a program needs to play by it."""

from __future__ import annotations

import hashlib
import json
import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import torch
from numpy.typing import NDArray
from onnx import helper

from busso.cards.compiled.bits import unpack
from busso.cards.game import Game
from busso.command import __version__
from busso.evaluate.export.agreement import ExportError, Values, Words
from busso.evaluate.export.exported_network import ExportedNetwork
from busso.evaluate.export.source import BITS, PACKED, ExportSource
from busso.evaluate.export.usage import layout_of
from busso.train.dqn.players.champion_file import shaping

OBSERVATION, VALUES = "observation", "values"  # names of the input and of the output
OPSET, IR = 18, 9  # what onnxruntime reads since 1.14, of 2023
KEY = "busso"  # of the metadata
_FORMAT = 1
_LEGAL = (
    "values has a number for each action, legal or not: play the legal one of the greatest value, of equal ones that "
    "of the lowest number. Masks of legal actions are uint64, bit a (the lowest is 0) for action a."
)
_ORDER = {
    PACKED: "bit k is bit k % 64, the lowest is 0, of word k // 64; bits after the last are not looked at",
    BITS: "bit k is column k, 0.0 or 1.0",
}


def write(path: Path, source: ExportSource, form: str) -> None:
    """Write the network with observations of this form, `packed` or `bits`. Raises ExportError if PyTorch cannot."""
    model = _traced(source, form)
    model.ir_version, model.producer_name, model.producer_version = IR, "busso", __version__
    model.doc_string = f"{source.title}: {OBSERVATION} ({form}) to {VALUES}; {KEY!r} in the metadata explains them."
    about = description(source, form) | {"sha256": checksum(model)}
    helper.set_model_props(model, {KEY: json.dumps(about)})
    onnx.checker.check_model(model, full_check=True)
    path.write_bytes(model.SerializeToString())


def _traced(source: ExportSource, form: str) -> onnx.ModelProto:
    """Export the network by PyTorch's exporter, for a batch of any size."""
    game = source.game
    rows = 2  # of the example; the exporter takes one row for a batch that is always one
    packed = form == PACKED
    example = torch.zeros(rows, game.words, dtype=torch.uint64) if packed else torch.zeros(rows, game.bits)
    with _without_remarks():
        try:
            program = torch.onnx.export(
                ExportedNetwork(source.network).eval(),
                (example,),
                input_names=[OBSERVATION],
                output_names=[VALUES],
                opset_version=OPSET,
                dynamic_shapes=({0: torch.export.Dim("batch")},),
                dynamo=True,
                verbose=False,
            )
        except torch.onnx.OnnxExporterError as error:
            reason = str(error.__cause__ or error).strip().partition("\n")[0]
            raise ExportError("export", f"PyTorch's exporter cannot follow the network: {reason}") from error
    assert program is not None
    model: onnx.ModelProto = program.model_proto
    if not all(each.type.tensor_type.shape.dim[0].dim_param for each in model.graph.input):
        raise ExportError(
            "export",
            f"PyTorch's exporter takes the batch for one of {rows} rows",
            "in forward write x.shape[0], not len(x), and no loop over the rows",
        )
    for each in (*model.graph.node, *model.graph.value_info, *model.graph.input, *model.graph.output, model.graph):
        each.ClearField("metadata_props")  # names of files on this machine, for debugging the exporter
    return model


@contextmanager
def _without_remarks() -> Iterator[None]:
    """Leave out what the exporter logs of packages that it misses, and warnings about its own code."""
    log = logging.getLogger("torch.onnx")
    level = log.level
    log.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        log.setLevel(level)


def description(source: ExportSource, form: str) -> dict[str, Any]:
    """Return the metadata, without the checksum."""
    game, settings = source.game, source.found.settings
    return {
        "format": _FORMAT,
        "version": __version__,
        "game": {"name": game.name, "options": asdict(game.options), "seats": game.seats, "unit": game.unit},
        "observation": {
            "form": form,
            "bits": game.bits,
            "words": game.words,
            "seen": settings.network.inputs or game.bits,  # the network looks at the first ones
            "order": _ORDER[form],
            "layout": layout_of(game),
        },
        "actions": [game.action_text(action) for action in range(game.actions)],
        "legal": _LEGAL,
        "settings": shaping(settings),
        "about": source.found.about,
        "results": dict(source.results),
    }


def checksum(model: onnx.ModelProto) -> str:
    """The sha256 of the bytes of all tensors of the graph, in their order."""
    digest = hashlib.sha256()
    for tensor in model.graph.initializer:
        digest.update(tensor.raw_data)
    return digest.hexdigest()


def values_of(path: Path, game: Game, form: str) -> Values:
    """Return the function that computes the file's values by onnxruntime on one CPU thread."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    try:
        session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # its own have no common base
        reason = str(error).partition("\n")[0]
        raise ExportError("export", f"onnxruntime cannot run the file: {reason}") from error

    def values(words: Words) -> NDArray[np.float32]:
        observation = words if form == PACKED else unpack(words, game.bits)
        found: NDArray[np.float32] = session.run([VALUES], {OBSERVATION: observation})[0]
        return found

    return values
