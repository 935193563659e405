"""The forward pass of Q-networks as an ONNX graph, from observations to values.

The operators are those of opset 18, all of which onnxruntime has on every device; the batch is of any size.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper
from torch import nn

from busso.cards.compiled.bits import WORD, words_for
from busso.evaluate.export.source import PACKED
from busso.train.dqn.network.equivariant_network import EquivariantNetwork
from busso.train.dqn.network.part_linear import PartLinear
from busso.train.dqn.network.q_network import QNetwork

OBSERVATION, NETWORK, VALUES = "observation", "network", "values"  # names of inputs and of the output
OPSET, IR = 18, 9  # what onnxruntime reads since 1.14, of 2023

_BATCH = "batch"
_BYTE = 8


class _Graph:
    """Nodes and constants as they are added."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.constants: dict[str, onnx.TensorProto] = {}

    def add(self, operator: str, *inputs: str, **attributes: Any) -> str:
        """Another node; the name of its output."""
        output = f"{operator.lower()}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, list(inputs), [output], output, **attributes))
        return output

    def constant(self, name: str, values: NDArray[Any]) -> str:
        """A tensor that comes with the graph; its name."""
        self.constants[name] = numpy_helper.from_array(np.ascontiguousarray(values), name)
        return name

    def weights(self, prefix: str, layer: nn.Module) -> list[str]:
        """The names of a layer's weight and, if it has one, bias."""
        return [self.constant(f"{prefix}.{name}", value.numpy()) for name, value in layer.named_parameters()]

    def whole(self, name: str, *values: int) -> str:
        """A vector of int64."""
        return self.constant(name, np.array(values, np.int64))


def graph_of(networks: Sequence[QNetwork], bits: int, actions: int, form: str) -> onnx.GraphProto:
    """The graph of these networks, with the weights as float32.

    Its input `observation` is uint64 `[batch, words]` with form `packed`, float32 `[batch, bits]` with `bits`. Its
    output `values` is float32 `[batch, actions]`. With several networks there is a second input `network`, int64
    `[batch]`, which says whose values are wanted in each row.
    """
    graph = _Graph()
    kind, width = (TensorProto.UINT64, words_for(bits)) if form == PACKED else (TensorProto.FLOAT, bits)
    inputs = [helper.make_tensor_value_info(OBSERVATION, kind, [_BATCH, width])]
    plain = _unpacked(graph, width) if form == PACKED else OBSERVATION
    outputs = [_values(graph, f"{k}.", network, plain) for k, network in enumerate(networks)]
    if len(networks) > 1:
        inputs.append(helper.make_tensor_value_info(NETWORK, TensorProto.INT64, [_BATCH]))
        outputs = [_of_drawn(graph, outputs)]
    graph.nodes.append(helper.make_node("Identity", outputs, [VALUES], VALUES))
    output = helper.make_tensor_value_info(VALUES, TensorProto.FLOAT, [_BATCH, actions])
    return helper.make_graph(graph.nodes, "busso", inputs, [output], list(graph.constants.values()))


def _unpacked(graph: _Graph, words: int) -> str:
    """Words to bits, the lowest first: each byte by a look into a table, which is faster than shifting bit by bit."""
    shifts = graph.constant("shifts", np.arange(0, WORD, _BYTE, dtype=np.uint64))
    ones = graph.constant("byte", np.array(255, np.uint64))
    table = (np.arange(256)[:, None] >> np.arange(_BYTE)) & 1
    each = graph.add("Unsqueeze", OBSERVATION, graph.whole("last_axis", -1))
    in_bytes = graph.add("BitwiseAnd", graph.add("BitShift", each, shifts, direction="RIGHT"), ones)
    index = graph.add("Cast", in_bytes, to=TensorProto.INT32)
    looked_up = graph.add("Gather", graph.constant("bits_of_byte", table.astype(np.float32)), index)
    return graph.add("Reshape", looked_up, graph.whole("all_bits", 0, WORD * words))


def _values(graph: _Graph, prefix: str, network: QNetwork, bits: str) -> str:
    """The values of one network, of bits of which it may look at the first alone."""
    if isinstance(network, EquivariantNetwork):
        return _equivariant(graph, prefix, network, bits)
    x = graph.add("Slice", bits, graph.whole("zero", 0), graph.whole(f"{prefix}seen", network.input.bits), _axis(graph))
    weight, bias = graph.weights(f"{prefix}input", network.input)
    x = graph.add("Relu", graph.add("Gemm", x, weight, bias))
    for k, layer in enumerate(_linear(network.body)):
        x = graph.add("Relu", graph.add("Gemm", x, *graph.weights(f"{prefix}body.{k}", layer), transB=1))
    advantage = graph.add("Gemm", x, *graph.weights(f"{prefix}head", network.head), transB=1)
    return _with_value(graph, prefix, network, x, advantage)


def _equivariant(graph: _Graph, prefix: str, network: EquivariantNetwork, bits: str) -> str:
    """The same where each part of the game is looked at: between the layers `[batch, parts, width]`."""
    assert isinstance(network.input, PartLinear)
    x = graph.add("Gather", bits, graph.constant(f"{prefix}bit_of", network.input.bit_of), axis=1)
    weight, bias = graph.weights(f"{prefix}input", network.input)
    x = graph.add("Relu", graph.add("Add", graph.add("MatMul", x, weight), bias))
    layers = _linear(network.body)
    for k, (own, mean) in enumerate(zip(layers[::2], layers[1::2], strict=True)):
        of_mean = graph.add("MatMul", _mean(graph, x), _transposed(graph, f"{prefix}mean.{k}", mean))
        x = graph.add("Relu", graph.add("Add", _linear_of(graph, f"{prefix}own.{k}", own, x), of_mean))
    of_parts = _linear_of(graph, f"{prefix}head", network.head, x)
    advantage = graph.add("Reshape", of_parts, graph.whole("all_actions", 0, network.actions))
    if network.value is None:
        return advantage
    flat = graph.add("Squeeze", _mean(graph, x), _axis(graph))
    return _with_value(graph, prefix, network, flat, advantage)


def _with_value(graph: _Graph, prefix: str, network: QNetwork, features: str, advantage: str) -> str:
    """`Q = V + A - mean A` of a dueling network; the advantage of any other is its value."""
    if network.value is None:
        return advantage
    value = graph.add("Gemm", features, *graph.weights(f"{prefix}value", network.value), transB=1)
    return graph.add("Sub", graph.add("Add", value, advantage), _mean(graph, advantage))


def _of_drawn(graph: _Graph, outputs: Sequence[str]) -> str:
    """The values of the network that each row names, out of several."""
    alike = [graph.add("Unsqueeze", output, _axis(graph)) for output in outputs]
    together = graph.add("Concat", *alike, axis=1)
    return graph.add("GatherND", together, graph.add("Unsqueeze", NETWORK, _axis(graph)), batch_dims=1)


def _mean(graph: _Graph, x: str) -> str:
    """Over the second axis, which stays."""
    return graph.add("ReduceMean", x, _axis(graph), keepdims=1)


def _axis(graph: _Graph) -> str:
    return graph.whole("second_axis", 1)


def _linear_of(graph: _Graph, prefix: str, layer: nn.Linear, x: str) -> str:
    bias = graph.constant(f"{prefix}.bias", layer.bias.numpy())
    return graph.add("Add", graph.add("MatMul", x, _transposed(graph, prefix, layer)), bias)


def _transposed(graph: _Graph, prefix: str, layer: nn.Linear) -> str:
    return graph.constant(f"{prefix}.weight", layer.weight.numpy().T)


def _linear(body: nn.Sequential) -> list[nn.Linear]:
    return [layer for layer in body if isinstance(layer, nn.Linear)]
