"""ONNX export of a network, with all metadata that a program needs to play by it."""

import json
import logging
import sys
import warnings
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import numpy as np
import onnx
import onnxruntime
import torch
from numpy.typing import NDArray
from onnx import helper
from torch import Tensor, nn

from busso.base.errors import UserError
from busso.cards.compiled.bits import WORD, unpack
from busso.cards.game import Game
from busso.cards.own.layout import table_of
from busso.evaluate.export.source import BITS, PACKED, ExportSource
from busso.train.network.q_network import QNetwork
from busso.train.players.champion_file import shaping
from busso.version import __version__

OBSERVATION, VALUES = "observation", "values"  # names of the input and of the output
TOLERANCE = 1e-5  # of a value; relative, where it is greater than 1
OPSET, IR = 18, 8  # onnxruntime 1.14, of 2023, reads both; IR 9 needs 1.15
KEY = "busso"  # of the metadata
_ORDER = {
    PACKED: "bit k is bit k % 64, the lowest is 0, of word k // 64; bits after the last are not looked at",
    BITS: "bit k is column k, 0.0 or 1.0",
}

Words = NDArray[np.uint64]
Values = Callable[[Words], NDArray[np.float32]]  # of packed observations


class ExportError(UserError):
    """Error for a network that PyTorch cannot export, or an exported file that differs from it."""

    exit_code = 1


class OnWords(nn.Module):
    """Network on packed uint64 observations, `[batch, words]`, unpacked by operators of ONNX that PyTorch lacks."""

    def __init__(self, network: QNetwork) -> None:
        super().__init__()
        self.network = network

    def forward(self, words: Tensor) -> Tensor:
        """Return the values of all actions, legal or not, `[batch, actions]`."""
        place, one = torch.arange(WORD).to(torch.uint64), torch.tensor(1, dtype=torch.uint64)
        kind: Any = {"dtype": torch.uint64, "shape": (*words.shape, WORD)}
        shifted = torch.onnx.ops.symbolic("BitShift", (words.unsqueeze(-1), place), {"direction": "RIGHT"}, **kind)
        bits = torch.onnx.ops.symbolic("BitwiseAnd", (shifted, one), **kind)
        values: Tensor = self.network(bits.float().flatten(1))
        return values


def model_of(source: ExportSource, form: str) -> bytes:
    """Export the network with observations of this form, packed or bits. Raises ExportError if PyTorch cannot."""
    model = _traced(source, form)
    model.ir_version, model.producer_name, model.producer_version = IR, "busso", __version__
    model.doc_string = f"{source.title}: play the legal action of the greatest value; {KEY!r} in the metadata says more"
    helper.set_model_props(model, {KEY: json.dumps(metadata(source, form))})
    onnx.checker.check_model(model, full_check=True)
    return bytes(model.SerializeToString())


def metadata(source: ExportSource, form: str) -> dict[str, Any]:
    """Return all that a program needs to play by the file, and an observation by which to check a runtime."""
    game, words = source.game, observations(source.game, 1)
    return {
        "game": {"name": game.name, "options": asdict(game.options)},
        "observation": {"form": form, "bits": game.bits, "order": _ORDER[form], "layout": layout_of(game)},
        "actions": [game.action_text(action) for action in range(game.actions)],
        "check": {
            "bits": np.flatnonzero(unpack(words, game.bits)).tolist(),  # those that are set
            "values": [round(value, 7) for value in _wanted(source.network, words)[0].tolist()],
        },
        "settings": shaping(source.found.settings),
        "about": source.found.about,
        "results": dict(source.results),
    }


def layout_of(game: Game) -> str:
    """Return the meaning of each bit of an observation: the table of the layout, if the game has one.

    Otherwise it is the docstring of the module of the game's `observe`.
    """
    if game.layout is not None:
        return table_of(game.layout, [game.action_text(action) for action in range(game.actions)])
    observe = getattr(game.rules.observe, "py_func", game.rules.observe)
    return (sys.modules[observe.__module__].__doc__ or "").strip()


def _traced(source: ExportSource, form: str) -> onnx.ModelProto:
    """Export the network by PyTorch's exporter, for a batch of any size."""
    rows = 2  # of the example; the exporter takes one row for a batch that is always one
    network, example = source.network, torch.zeros(rows, source.game.bits)
    if form == PACKED:
        example = torch.zeros(rows, source.game.words, dtype=torch.uint64)
    log = logging.getLogger("torch.onnx")
    level = log.level
    log.setLevel(logging.ERROR)  # else it names packages that it would like to have
    try:
        with warnings.catch_warnings(action="ignore"):  # about the exporter's own code
            program = torch.onnx.export(
                OnWords(network).eval() if form == PACKED else network,
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
    finally:
        log.setLevel(level)  # the program that calls may log by it
    assert program is not None
    model: onnx.ModelProto = program.model_proto
    if not model.graph.input[0].type.tensor_type.shape.dim[0].dim_param:
        raise ExportError(
            "export",
            f"PyTorch's exporter takes the batch for one of {rows} rows",
            "in forward write x.shape[0], not len(x), and no loop over the rows",
        )
    for each in (*model.graph.node, *model.graph.value_info, *model.graph.input, *model.graph.output, model.graph):
        each.ClearField("metadata_props")  # names of files on this machine, for debugging the exporter
    return model


def values_of(model: bytes, game: Game, form: str) -> Values:
    """Return the function that computes a file's values by onnxruntime on one CPU thread."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    try:
        session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # its own have no common base
        reason = str(error).partition("\n")[0]
        raise ExportError("export", f"onnxruntime cannot run the file: {reason}") from error

    def values(words: Words) -> NDArray[np.float32]:
        observation = words if form == PACKED else unpack(words, game.bits)
        found: NDArray[np.float32] = session.run([VALUES], {OBSERVATION: observation})[0]
        return found

    return values


def observations(game: Game, rows: int) -> Words:
    """Return `rows` packed observations `[rows, words]`, always the same, without compiling anything.

    Each bit is set once in sixteen, as often as in Tressette.
    """
    words: Words = np.bitwise_and.reduce(np.random.default_rng(7).integers(0, 2**64, (4, rows, game.words), np.uint64))
    words[:, -1] &= np.uint64(2 ** (game.bits - WORD * (game.words - 1)) - 1)
    return words


def difference(network: QNetwork, exported: Values, words: Words) -> float:
    """Return the largest difference between the values. Raises ExportError if it exceeds TOLERANCE.

    Below it, the chosen actions differ only where the best two values are within twice the tolerance.
    """
    wanted = _wanted(network, words)
    apart = np.abs(exported(words) - wanted)
    if not (apart <= TOLERANCE * np.maximum(1, np.abs(wanted))).all():  # also where one is no number
        raise ExportError("export", f"the exported values are up to {apart.max():.1e} from those of the network")
    return float(apart.max())


def _wanted(network: QNetwork, words: Words) -> NDArray[np.float32]:
    with torch.inference_mode():
        values: NDArray[np.float32] = network(torch.from_numpy(words.view(np.int64))).numpy()
    return values
