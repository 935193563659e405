"""Update: targets by hand, target networks, and a toy problem that must be solved."""

import copy
import math
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from busso.train.learner.learner import Bootstrap, Learner, masked_max, td_target
from busso.train.learner.replay_buffer import NStepBatch, ReplayBuffer
from busso.train.network.q_network import DenseNetwork
from busso.train.rollout.transitions import LambdaTransitions, NStepTransitions, transitions_for
from busso.train.settings.dqn import LearnerSettings, Targets
from tests.chips import Chip, emulated_chip
from tests.train.defaults import lambda_targets, learner_settings, network_targets

CPU = torch.device("cpu")


def test_td_target_by_hand() -> None:
    """The next value is ignored at the end, even if it is infinite."""
    discount, next_value = torch.tensor([0.9, 0.5, 0.0]), torch.tensor([2.0, 4.0, -torch.inf])
    target = td_target(torch.tensor([1.0, -2.0, 0.5]), discount, next_value)
    assert target.tolist() == pytest.approx([2.8, 0.0, 0.5])


def test_masked_max_by_hand() -> None:
    values = torch.tensor([[3.0, 2.0, 1.0], [-5.0, -1.0, -2.0], [0.0, 0.0, 0.0]])
    legal = torch.tensor([[False, True, True], [True, False, True], [False, False, False]])
    assert masked_max(values, legal).tolist() == [2.0, -2.0, -math.inf]


def formatted(chip: Chip, **settings: Any) -> LearnerSettings:
    """Return settings with the chip's number format."""
    return learner_settings(precision=chip.format, **({"ema_decay": 0.0} | settings))


def learner(settings: LearnerSettings, targets: Targets | None = None, device: str = "cpu") -> Learner:
    """Build a learner with a target network that is only copied, unless `targets` says otherwise."""
    torch.manual_seed(0)
    targets = targets or network_targets(tau=0.0)
    replay = ReplayBuffer(transitions_for(targets), 1000, 1, torch.device(device), seed=1)
    return Learner(DenseNetwork(8, 4, (16, 16), False), replay, settings, targets, torch.device(device))


def bootstrap(it: Learner) -> Bootstrap:
    assert it.bootstrap is not None
    return it.bootstrap


def batch(legal: list[int], discount: float = 0.5) -> NStepBatch:
    n = len(legal)
    observation = torch.arange(n).unsqueeze(1)
    return NStepBatch(
        observation,
        torch.zeros(n, dtype=torch.uint8),
        torch.ones(n),
        torch.full((n,), discount),
        observation + 3,
        torch.tensor(legal),
    )


def test_next_value_uses_target_network_and_the_seats_own_mask(chip: Chip) -> None:
    it = learner(formatted(chip), network_targets())
    target = bootstrap(it).network
    with torch.no_grad():
        for parameter in target.parameters():
            parameter.add_(torch.randn_like(parameter))
    inputs = torch.tensor([[3], [4]])
    of_target = target(inputs)
    masks = [0b1010, 0b0101]
    expected = []
    for row, mask in enumerate(masks):
        actions = [a for a in range(4) if mask >> a & 1]
        expected.append(1 + 0.5 * max(float(of_target[row, a]) for a in actions))
    assert bootstrap(it).targets(batch(masks)).tolist() == pytest.approx(expected, abs=1e-6)


def filled(it: Learner, discount: float = 0.0) -> Learner:
    random = np.random.default_rng(1)
    words = random.integers(0, 256, (500, 1)).astype(np.uint64)
    actions = random.integers(0, 4, 500).astype(np.uint8)
    reward = (words[:, 0] % 4 == actions).astype(np.float32)
    if it.bootstrap is None:
        it.replay.add(LambdaTransitions(words, actions, reward))
        return it
    legal = np.full(500, 15, np.uint64)
    successor = np.full(500, discount > 0, np.int32)
    successor[-1] = 0
    discounts = (discount * successor).astype(np.float32)
    it.replay.add(NStepTransitions(words, legal, actions, reward, discounts, successor))
    return it


def test_solves_a_chain_by_bootstrapping(chip: Chip) -> None:
    """Five cells, 0 steps left and 1 right, reward 1 for reaching the right end, discount 0.9: Q* = 0.9 ** distance.

    The transitions are from one walk in which every action is taken in every cell. The second hidden layer is the first
    with a matrix product; the output layer learns from rounded inputs.
    """
    cell, rows = 0, []
    for action in (0, 1, 1, 1, 0, 0, 0, 1, 1, 1, 1):
        then = max(cell - 1, 0) if action == 0 else cell + 1
        rows.append((1 << cell, action, float(then == 4), 0.0 if then == 4 else 0.9, int(then < 4)))
        cell = then
    assert cell == 4 and len({row[:2] for row in rows}) == 8
    words, actions, rewards, discounts, successor = (np.array(column) for column in zip(*rows, strict=True))
    transitions = NStepTransitions(
        words.astype(np.uint64)[:, None],
        np.full(len(rows), 3, np.uint64),
        actions.astype(np.uint8),
        rewards.astype(np.float32),
        discounts.astype(np.float32),
        successor.astype(np.int32),
    )
    torch.manual_seed(0)
    replay = ReplayBuffer(NStepTransitions, len(rows), 1, CPU, seed=1)
    replay.add(transitions)
    targets = network_targets(tau=0.0, update_interval=10)
    settings = formatted(chip, lr=1e-2, batch_size=32, loss="mse")
    it = Learner(DenseNetwork(4, 2, [32, 32], dueling=True), replay, settings, targets, CPU)
    for k in range(600):
        it.lr = 1e-2 * (1 - k / 600)  # decays, so that the last updates do not add noise
        it.update()
    values = it.online(torch.tensor([[1], [2], [4], [8]]))
    assert values[:, 1].tolist() == pytest.approx([0.9**3, 0.9**2, 0.9, 1.0], abs=0.03)
    assert values[:, 0].tolist() == pytest.approx([0.9**4, 0.9**4, 0.9**3, 0.9**2], abs=0.03)


@pytest.mark.parametrize("loss", ["huber", "mse"])
def test_one_update_is_one_adam_step_on_the_sampled_batch(loss: str, chip: Chip) -> None:
    """Compared with PyTorch's clipping and Adam on each parameter."""
    it = filled(learner(formatted(chip, lr=1e-2, loss=loss, batch_size=32, grad_clip=0.01)))
    network = copy.deepcopy(it.online).requires_grad_()
    parameters = list(network.parameters())
    optimizer = torch.optim.Adam(parameters, lr=1e-2)
    twin = ReplayBuffer(NStepTransitions, 1000, 1, CPU, seed=5)
    twin.load_state_dict(it.replay.state_dict())
    rows = twin.rows(twin.draw(32))
    error = network(rows.observation)[torch.arange(32), rows.action.long()] - rows.returns
    each = error**2 if loss == "mse" else torch.where(error.abs() < 1, 0.5 * error**2, error.abs() - 0.5)
    each.mean().backward()  # type: ignore[no-untyped-call]
    torch.nn.utils.clip_grad_norm_(parameters, 0.01)
    optimizer.step()
    it.update()
    for a, b in zip(parameters, it.online.parameters(), strict=True):
        assert torch.allclose(a, b, atol=1e-6)


def same(a: DenseNetwork, b: DenseNetwork) -> bool:
    return all(torch.equal(x, y) for x, y in zip(a.parameters(), b.parameters(), strict=True))


def test_hard_sync_every_so_many_updates() -> None:
    targets = network_targets(tau=0.0, update_interval=3)
    it = filled(learner(learner_settings(batch_size=8, precision="float32"), targets))
    target = bootstrap(it).network
    initial = copy.deepcopy(target)
    for _ in range(2):
        it.update()
        assert same(target, initial) and not same(target, it.online)
    it.update()
    assert same(target, it.online)


def test_soft_sync_moves_by_tau() -> None:
    it = filled(learner(learner_settings(batch_size=8, precision="float32"), network_targets(tau=0.25)))
    target = bootstrap(it).network
    before = [p.clone() for p in target.parameters()]
    it.update()
    for old, slow, fast in zip(before, target.parameters(), it.online.parameters(), strict=True):
        assert torch.allclose(slow, 0.75 * old + 0.25 * fast, atol=1e-7)


def test_lambda_returns_are_the_targets_and_nothing_else_is_kept(chip: Chip) -> None:
    """Equivalent to a target network if every transition ends its game."""
    how = formatted(chip, batch_size=32, ema_decay=0.9, muon=4.0)
    it, other = filled(learner(how, lambda_targets())), filled(learner(how))
    for _ in range(3):
        it.update()
        other.update()
    assert same(it.online, other.online) and it.metrics() == other.metrics()
    state = it.state_dict()
    assert it.bootstrap is None and other.state_dict().keys() - state.keys() == {"target"}
    assert it.replay.nbytes == 1000 * (8 + 1 + 4) and other.replay.nbytes == 1000 * (8 + 21)


@pytest.mark.parametrize(
    ("decay", "shares"), [(0.99, (1, 21 / 22, 21 / 23, 21 / 24)), (0.1, (1, 21 / 22, 21 / 23, 0.9))]
)
def test_average_plays_when_asked_for(decay: float, shares: tuple[float, ...]) -> None:
    it = filled(learner(learner_settings(ema_decay=decay, batch_size=8, lr=0.1, precision="float32")))
    expected: list[torch.Tensor] = []
    for share in shares:
        it.update()
        online = [p.detach().clone() for p in it.online.parameters()]
        before = expected or [p.detach() for p in learner(it.settings).online.parameters()]
        expected = [a + share * (b - a) for a, b in zip(before, online, strict=True)]
    for a, b in zip(it.inference_weights().values(), expected, strict=True):
        assert torch.allclose(a, b, atol=1e-5)


def test_state_restores_the_next_updates_bit_for_bit(chip: Chip) -> None:
    how = formatted(chip, batch_size=8, ema_decay=0.9, muon=4.0)
    it = filled(learner(how), discount=0.9)
    for _ in range(5):
        it.update()
    other = learner(how)
    other.load_state_dict(copy.deepcopy(it.state_dict()))
    other.replay.load_state_dict(it.replay.state_dict())
    for _ in range(5):
        it.update()
        other.update()
    assert same(it.online, other.online) and it.metrics() == other.metrics()
    assert same(bootstrap(it).network, bootstrap(other).network)
    assert it.average is not None and other.average is not None and same(it.average, other.average)


@pytest.mark.parametrize("discount", [0.0, 1.0])
def test_values_targets_and_errors_are_float32_in_every_format(discount: float, chip: Chip) -> None:
    """Values are 1001, returns 1, errors 1000 or 1001 - (1 + 1001); bfloat16 has no number between 1000 and 1004."""
    it = filled(learner(formatted(chip, loss="mse", batch_size=32)), discount)
    it.replay._data["n_step_return"].fill_(1.0)
    it.replay._data["discount"].fill_(discount)
    it.replay._data["successor"][it.replay.size - 1] = -1  # the last row has a successor, too, if others have
    for network in (it.online, bootstrap(it).network):
        torch.nn.init.zeros_(network.head.weight)
        torch.nn.init.constant_(network.head.bias, 1001.0)
    it.update()
    error = 1.0 if discount else 1000.0
    means = it.metrics()
    assert (means["train/q_mean"], means["train/td_error"], means["train/loss"]) == (1001.0, error, error**2)


def test_weights_that_are_saved_and_published_are_float32_in_every_format(chip: Chip) -> None:
    it = filled(learner(formatted(chip, batch_size=8, ema_decay=0.9)))
    it.update()
    state = it.state_dict()
    weights = [*it.inference_weights().values(), *state["online"].values(), *state["target"].values()]
    assert {tensor.dtype for tensor in weights} == {torch.float32}


class Readings(TorchDispatchMode):
    """Counter of GPU synchronizations: values read into Python, and results of data-dependent size."""

    WAIT = ("_local_scalar_dense", "equal", "is_nonzero", "nonzero")
    count = 0

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.count += function.overloadpacket.__name__ in self.WAIT
        return function(*args, **(kwargs or {}))


@pytest.mark.parametrize("targets", [network_targets(), lambda_targets()])
def test_an_update_reads_nothing_back_from_the_device(targets: Targets) -> None:
    """With the operations of other devices, and with every optional part of an update."""
    settings = learner_settings(batch_size=8, ema_decay=0.9, muon=4.0, precision="float32")
    with emulated_chip("other_device"):
        it = filled(learner(settings, targets), discount=0.9)
        it.update()
        with Readings() as readings:
            it.update()
            assert readings.count == 0
            assert it._sums[0].item() >= 0 and readings.count == 1  # the counter works


@pytest.mark.gpu
def test_an_update_never_waits_for_the_gpu() -> None:
    settings = learner_settings(batch_size=8, ema_decay=0.9, muon=4.0)
    it = filled(learner(settings, network_targets(), device="cuda"), 0.9)
    it.update()
    torch.cuda.set_sync_debug_mode("error")
    try:
        it.update()
    finally:
        torch.cuda.set_sync_debug_mode("default")
