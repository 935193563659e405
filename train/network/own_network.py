"""The user's own networks and losses, in named Python files."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from busso.base import own_files
from busso.base.errors import InputError
from busso.base.own_files import OwnFile, own_code
from busso.cards.compiled.bits import WORD, unpack
from busso.cards.game import Game
from busso.cards.player_specs import PlayerSpec, read_arguments
from busso.command.settings.checks import errors_about
from busso.command.settings.quoting import TYPED_NETWORK
from busso.train.network.matmul import by_own_code
from busso.train.network.packed_linear import bits_at
from busso.train.network.q_network import QNetwork

Loss = Callable[[Tensor, Tensor], Tensor]  # maps values and targets, `[batch]`, to a loss

LOSSES: dict[str, Loss] = {"huber": F.huber_loss, "mse": F.mse_loss}
LOSS = "learner.loss"  # key of the setting that names one
_GIVEN = ("bits", "actions", "game")  # arguments passed to a network that has parameters of these names
_ROWS = 16  # observations in a trial
_WAY_OUT = (
    "write `def loss(value, target, ...)` with defaults for all other arguments",
    f"a network is constructed with {', '.join(_GIVEN)} by keyword; give all other arguments defaults",
)


class OwnNetwork(QNetwork):
    """Q-network around the user's own module, always in float32.

    It sees the first `bits` bits; missing ones are 0. Without gradients it runs in evaluation mode even while it
    learns, so that computing targets does not change BatchNorm statistics.
    """

    def __init__(self, module: nn.Module, bits: int, actions: int, what: OwnPart) -> None:
        super().__init__(actions)
        self.module, self.bits, self._what = module, bits, what
        self._fixed = [each for each in module.parameters() if not each.requires_grad]
        self.requires_grad_(False)

    def requires_grad_(self, requires_grad: bool = True) -> OwnNetwork:
        """Set `requires_grad`, except for parameters that the module itself has frozen."""
        super().requires_grad_(requires_grad)
        for each in self._fixed:
            each.requires_grad_(False)
        return self

    def forward(self, words: Tensor) -> Tensor:
        as_at_the_table = self.training and not torch.is_grad_enabled()
        if as_at_the_table:
            self.eval()
        try:
            with self._what.naming_errors("forward"):
                values: Tensor = self.module(_unpacked(words, self.bits))
            return values.float()
        finally:
            if as_at_the_table:
                self.train()


def _unpacked(words: Tensor, bits: int) -> Tensor:
    """Return the first bits of packed or unpacked observations, float32 `[batch, bits]`, padded with zeros."""
    there = min(bits, words.shape[1] if words.is_floating_point() else WORD * words.shape[1])
    if by_own_code(words):
        seen = torch.from_numpy(unpack(words.numpy().view(np.uint64), there))
    else:
        seen = bits_at(words, torch.arange(there, device=words.device)).float()
    return seen if there == bits else F.pad(seen, (0, bits - there))


def own_buffers(network: QNetwork | None) -> list[Tensor]:
    """Return the buffers of the user's own module; those of other networks never change."""
    return list(network.buffers()) if isinstance(network, OwnNetwork) else []


@contextmanager
def unchanged(network: QNetwork) -> Iterator[None]:
    """Restore on exit what a forward pass of the user's own module changes: buffers and random generators."""
    buffers, state = own_buffers(network), random_state(network)
    kept = [each.clone() for each in buffers]
    try:
        yield
    finally:
        restore_random_state(network, state)
        for each, before in zip(buffers, kept, strict=True):
            each.copy_(before)


def random_state(network: QNetwork) -> dict[str, Tensor]:
    """Return the state of PyTorch's generators, which the user's own module may use; empty for other networks."""
    if not isinstance(network, OwnNetwork):
        return {}
    on_gpu = network.device.type == "cuda"
    return {"cpu": torch.get_rng_state()} | ({"cuda": torch.cuda.get_rng_state(network.device)} if on_gpu else {})


def restore_random_state(network: QNetwork, state: Mapping[str, Tensor]) -> None:
    """Restore `random_state`; a state of another device type is ignored."""
    if "cpu" in state:
        torch.set_rng_state(state["cpu"].cpu())
    if "cuda" in state and network.device.type == "cuda":
        torch.cuda.set_rng_state(state["cuda"].cpu(), network.device)


# ---------------------------------------------------------------------- parts of a file


@dataclass(frozen=True)
class OwnPart:
    """Network or loss in a named file, with the options given."""

    file: OwnFile
    name: str
    made: Callable[..., Any]
    options: Mapping[str, Any]

    @contextmanager
    def naming_errors(self, what: str) -> Iterator[None]:
        """Convert an error in the part into an OwnCodeError with the file, the line and the method `what`."""
        place = self.file.line_of(getattr(self.made, what, self.made))
        with own_code(self.file, f"{self.name}: {what}" if isinstance(self.made, type) else self.name, place):
            yield

    def __deepcopy__(self, memo: object) -> OwnPart:
        return self


def own_part(text: str, key: str) -> OwnPart:
    """Return the network (`key` is TYPED_NETWORK) or loss that `text` names in a file of the user's own.

    Raises SettingsError if it does not exist or the user has not named its file, OwnCodeError for an error in the file.
    """
    with errors_about(key):
        spec = PlayerSpec.parse(text)
        file = own_files.required(spec.who, key, text)
        wanted, kind = ("networks", "an nn.Module") if key == TYPED_NETWORK else ("functions", "a function")
        found = {name: made for name, made in file.defined().items() if _is_part(made, key)}
        fitting = [name for name, made in found.items() if not _lacking(made, key)]
        if spec.of is None and len(fitting) != 1:
            hint = f"choose one: {', '.join(fitting or found)}" if found else f"define {kind} there"
            raise InputError(spec, f"{file.typed} has {len(fitting) or 'no'} {wanted}", hint)
        name = fitting[0] if spec.of is None else spec.of
        if name not in found:
            problem = f"is not {kind}" if name in file.defined() else "is not defined there"
            raise InputError(spec, f"{name} {problem}", f"it has {', '.join(found) or f'no {wanted}'}")
        if lacking := _lacking(found[name], key):
            raise InputError(spec, f"{name} needs {', '.join(lacking)}", _WAY_OUT[key == TYPED_NETWORK])
        options = read_arguments(inspect.signature(found[name]).parameters.values(), spec, name)
        return OwnPart(file, name, found[name], options)


def _is_part(made: Any, key: str) -> bool:
    is_class = isinstance(made, type)
    return is_class and issubclass(made, nn.Module) if key == TYPED_NETWORK else not is_class


def _lacking(made: Callable[..., Any], key: str) -> Collection[str]:
    """Return the required arguments that busso does not pass. It passes a loss its first two."""
    plain = [each for each in inspect.signature(made).parameters.values() if each.kind not in (2, 4)]
    required = [each.name for each in plain if each.default is each.empty]
    if key == TYPED_NETWORK:
        return [name for name in required if name not in _GIVEN]
    return required[2:] if len(plain) >= 2 else ["value and target"]


def full_name(text: str, key: str) -> str:
    """Add the name of the file's only network or loss to a text without one. Raises as `own_part`."""
    spec = PlayerSpec.parse(text)
    return str(PlayerSpec(spec.who, own_part(text, key).name, spec.options))


def own_parts(network: str | None, loss: str) -> str:
    """Describe which of these are the user's own, for a message; empty if neither is."""
    return " and ".join([*([network] if network else []), *([loss] if loss not in LOSSES else [])])


def build_own(game: Game, text: str, bits: int) -> OwnNetwork:
    """Build the network that a text names, for the first `bits` bits. Raises as `own_part`."""
    part = own_part(text, TYPED_NETWORK)
    arguments = inspect.signature(part.made).parameters
    given = {"bits": bits, "actions": game.actions, "game": game}
    with part.naming_errors("__init__"):
        module = part.made(**{key: given[key] for key in _GIVEN if key in arguments}, **part.options)
        if not any(True for _ in module.parameters()):
            raise ValueError("no parameters to learn")
        if any(nn.parameter.is_lazy(each) for each in module.parameters()):
            raise ValueError("a lazy layer has no size yet; give it one, or call the network once in __init__")
    return OwnNetwork(module, bits, game.actions, part)


def loss_of(text: str) -> Loss:
    """Return the loss function of `learner.loss`, averaging a user's loss that returns one number per row."""
    if text in LOSSES:
        return LOSSES[text]
    part = own_part(text, LOSS)
    function = partial(part.made, **part.options)

    def loss(value: Tensor, target: Tensor) -> Tensor:
        with part.naming_errors("loss"):
            found: Tensor = function(value, target)
            return found.mean()

    return loss


# ---------------------------------------------------------------------- trials


def try_own(network: QNetwork, words: int, loss: str) -> None:
    """Try the user's own network and loss on a few observations before training. Raises OwnCodeError."""
    if isinstance(network, OwnNetwork):
        _try_network(network, words)
    if loss not in LOSSES:
        _try_loss(own_part(loss, LOSS))


def _try_network(network: OwnNetwork, words: int) -> None:
    generator = torch.Generator().manual_seed(1)
    rows = torch.randint(-(2**63), 2**63 - 1, (_ROWS, words), generator=generator)
    with network._what.naming_errors("forward"), torch.random.fork_rng(devices=[]):
        learning = copy.deepcopy(network).train().requires_grad_(True)
        playing = copy.deepcopy(network).eval()
        playing.load_state_dict(learning.state_dict())
        buffers = dict(learning.module.named_buffers())
        with torch.inference_mode():
            for batch in (rows, rows[:1]):
                _check_values(playing, playing(batch), len(batch))
        _check_values(learning, values := learning(rows), _ROWS)
        _check_buffers(buffers, learning.module)
        if not values.requires_grad:
            raise ValueError("the values have no gradient")
        values.sum().backward()


def _check_values(network: OwnNetwork, values: Tensor, rows: int) -> None:
    wanted = (rows, network.actions)
    if tuple(values.shape) != wanted:
        raise ValueError(f"returned {list(values.shape)}, not {list(wanted)}, one value per action")
    if not values.isfinite().all():
        raise ValueError("returned NaN or an infinity before any training")


def _check_buffers(before: Mapping[str, Tensor], module: nn.Module) -> None:
    """Raise ValueError for a buffer that the average and players would not follow, or no checkpoint would hold."""
    kept = module.state_dict()
    for name, buffer in module.named_buffers():
        if buffer is not before.get(name):
            raise ValueError(f"replaces the buffer {name}; change it in place: self.{name}.copy_(...)")
        if name in kept and buffer.is_floating_point() and not buffer.isfinite().all():
            raise ValueError(f"the buffer {name} is not finite; register it with persistent=False")


def _try_loss(part: OwnPart) -> None:
    value, target = torch.linspace(-1, 1, _ROWS, requires_grad=True), torch.linspace(1, -0.5, _ROWS)
    with part.naming_errors("loss"):
        found = part.made(value, target, **part.options)
        if not isinstance(found, Tensor) or tuple(found.shape) not in ((), (_ROWS,)):
            shape = list(found.shape) if isinstance(found, Tensor) else type(found).__name__
            raise ValueError(f"returned {shape}, not a number or one per row ({_ROWS})")
        if not found.isfinite().all():
            raise ValueError("returned NaN or an infinity")
        if not found.requires_grad:
            raise ValueError("the returned value has no gradient")
        found.mean().backward()  # type: ignore[no-untyped-call]
