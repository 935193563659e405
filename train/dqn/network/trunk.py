"""The hidden layers of a Q-network on a GPU: matrix products, and between two of them one kernel."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from train.dqn.kernels.nvrtc import launch
from train.dqn.kernels.operators import by_kernels, operator
from train.dqn.network.bits import FORMATS, see
from train.dqn.network.flat import ROWS, padded, views
from train.dqn.network.packed_linear import PackedLinear

_KNOWN = (torch.float32, torch.bfloat16)


class Network(nn.Module):
    """What is asked of a network, whose first parameters are those of `input` and `body`."""

    input: PackedLinear
    body: nn.Sequential
    format: torch.dtype
    flat: Tensor | None = None  # see `train.dqn.network.flat.flatten`


class Layer(NamedTuple):
    """The weights of a hidden layer, `[in, out]`, `[out]` and `[in, out]`."""

    own: Tensor
    bias: Tensor
    of_mean: Tensor | None


def knows(network: Network, words: Tensor) -> bool:
    """Whether `trunk` computes this: on a GPU, in a format that it has, and to learn only the weights of a learner."""
    weight = network.input.weight
    learns = torch.is_grad_enabled() and weight.requires_grad
    return by_kernels(words.device) and network.format in _KNOWN and not (learns and _flat(network) is None)


def trunk(network: Network, words: Tensor) -> Tensor:
    """The output of the last hidden layer, `[batch * parts, width]`; of one with parts, in float32.

    A backward pass adds the gradient to that of the network's flat tensor, in which it finds its weights.
    """
    out: Tensor = _Trunk.apply(network.input.weight, words, network)  # type: ignore[no-untyped-call]
    return out


class _Trunk(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, anchor: Tensor, words: Tensor, network: Network) -> Tensor:
        parts, layers, flat = network.input.parts, *_layers_of(network)
        outs = [see(words, network.input.places, parts, network.format)]
        means: list[Tensor] = []
        for k, layer in enumerate(layers):
            if parts == 1:
                outs.append(torch._addmm_activation(layer.bias, outs[-1], layer.own))  # with the ReLU
                continue
            last = k == len(layers) - 1
            of_mean = None if layer.of_mean is None else means[-1] @ layer.of_mean
            out, mean = mix(outs[-1] @ layer.own, layer.bias, of_mean, parts, last)
            outs.append(out)
            means.append(mean)
        if flat is not None:
            ctx.network = network
            ctx.save_for_backward(flat, *outs, *means)
        return outs[-1]

    @staticmethod
    def backward(ctx: Any, of_out: Tensor) -> tuple[None, None, None]:
        flat, *kept = ctx.saved_tensors
        parts, gradient = ctx.network.input.parts, torch.zeros_like(flat)
        layers, to_write = list(_layers(flat, ctx.network)), list(_layers(gradient, ctx.network))
        outs, means = kept[: len(layers) + 1], kept[len(layers) + 1 :]
        of_mean = None
        for k in reversed(range(len(layers))):
            layer, write = layers[k], to_write[k]
            if parts == 1:
                of_own = total = torch.ops.aten.threshold_backward(of_out, outs[k + 1], 0)
            else:
                of_own, total = unmix(of_out, of_mean, outs[k + 1], parts, flat.dtype == torch.bfloat16)
            torch.mm(outs[k].t(), of_own, out=write.own)
            torch.sum(total, 0, out=write.bias)
            if layer.of_mean is not None and write.of_mean is not None:
                torch.mm(means[k - 1].t(), total, out=write.of_mean)
                of_mean = total @ layer.of_mean.t()
            if k:
                of_out = of_own @ layer.own.t()
        ctx.network.flat.grad.add_(gradient)
        return None, None, None


def _flat(network: Network) -> Tensor | None:
    """The network's weights as one tensor, if they are still views of it: not so those of a copy."""
    flat = network.flat
    return flat if flat is not None and flat.data_ptr() == network.input.weight.data_ptr() else None


def _layers_of(network: Network) -> tuple[list[Layer], Tensor | None]:
    """The layers in the format in which they multiply, and the flat tensor of which they are views."""
    flat = _flat(network)
    if flat is not None:
        flat = flat.to(network.format)
        return list(_layers(flat, network)), flat
    weight, *others = list(network.parameters())[: _count(network)]
    whole = F.pad(weight, (0, 0, 0, padded(len(weight), ROWS) - len(weight)))
    return list(_ordered(iter([each.to(network.format) for each in (whole, *others)]), network)), None


def _count(network: Network) -> int:
    """The number of parameters of hidden layers, which are the first ones."""
    return 2 + len(list(network.body.parameters()))


def _layers(flat: Tensor, network: Network) -> Iterator[Layer]:
    _, *others = views(flat, network)[: _count(network)]
    rows, width = padded(network.input.bits, ROWS), len(network.input.bias)
    return _ordered(iter([flat[: rows * width].view(rows, width), *others]), network)


def _ordered(tensors: Iterator[Tensor], network: Network) -> Iterator[Layer]:
    yield Layer(next(tensors), next(tensors), None)
    for weight in tensors:
        yield Layer(weight.t(), next(tensors), next(tensors).t() if network.input.parts > 1 else None)


def _mix(own: Tensor, bias: Tensor, of_mean: Tensor | None, parts: int, last: bool) -> tuple[Tensor, Tensor]:
    width = own.shape[1]
    out = torch.empty_like(own, dtype=torch.float32 if last else own.dtype)
    mean = own.new_empty(0 if last else len(own) // parts, width)
    name = f"mix_{FORMATS[own.dtype]}_{FORMATS[out.dtype]}"
    size, kept = own.numel() // parts, None if last else mean
    launch(name, size, own, bias, of_mean, out, kept, parts, width)
    return out, mean


@operator("mix(Tensor own, Tensor bias, Tensor? of_mean, int parts, bool last) -> (Tensor, Tensor)", _mix)
def mix(own: Tensor, bias: Tensor, of_mean: Tensor | None, parts: int, last: bool) -> tuple[Tensor, Tensor]:
    """`relu(own + bias + of_mean)` of each part, `[batch * parts, width]`, and its mean over the parts.

    `of_mean` is `[batch, width]`. Of the `last` layer, the first is float32 and the second is empty.
    """
    total = own.float().view(-1, parts, own.shape[1]) + bias.float()
    out = (total if of_mean is None else total + of_mean.float().unsqueeze(1)).relu()
    mean = own.new_empty(0, own.shape[1]) if last else out.mean(1).to(own.dtype)
    return out.view_as(own).to(torch.float32 if last else own.dtype), mean


def _unmix(of_out: Tensor, of_mean: Tensor | None, out: Tensor, parts: int, short: bool) -> tuple[Tensor, Tensor]:
    dtype, width = torch.bfloat16 if short else torch.float32, out.shape[1]
    of_own, total = (out.new_empty(len(out) // n, width, dtype=dtype) for n in (1, parts))
    name, size = f"unmix_{FORMATS[dtype]}_{FORMATS[out.dtype]}", total.numel()
    launch(name, size, of_out.contiguous(), of_mean, out, of_own, total, parts, width)
    return of_own, total


@operator("unmix(Tensor of_out, Tensor? of_mean, Tensor out, int parts, bool short) -> (Tensor, Tensor)", _unmix)
def unmix(of_out: Tensor, of_mean: Tensor | None, out: Tensor, parts: int, short: bool) -> tuple[Tensor, Tensor]:
    """The gradient of `mix` by `own`, and its sum over the parts; both bfloat16, if `short`.

    From the gradients by both of its outputs, that by the mean as far as there is one, and the first output.
    """
    dtype = torch.bfloat16 if short else torch.float32
    of_own = of_out.float().view(-1, parts, out.shape[1])
    of_own = of_own if of_mean is None else of_own + of_mean.float().unsqueeze(1) / parts
    of_own = of_own.masked_fill(out.view_as(of_own) <= 0, 0)
    return of_own.view_as(out).to(dtype), of_own.sum(1).to(dtype)
