"""Update: targets by hand, target networks, a toy problem, learning rate, Muon, and threads."""

import copy
import math
import re
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from busso.cards.compiled.splitmix import stream
from busso.cards.game import load_game
from busso.command.conf_folder import value_at
from busso.train.api import open_trainer
from busso.train.learner.learner import (
    Bootstrap,
    Learner,
    epsilon,
    linear,
    masked_max,
    td_target,
    with_learner_threads,
)
from busso.train.learner.muon import Muon, orthogonal
from busso.train.learner.replay_buffer import NStepBatch, ReplayBuffer
from busso.train.network.q_network import DenseNetwork
from busso.train.rollout.transitions import LambdaTransitions, NStepTransitions, transitions_for
from busso.train.rollout.worker import one_side, player_names, seating
from busso.train.run.folder import RunFolder
from busso.train.settings.dqn import (
    SIDE,
    LearnerSettings,
    PhaseSettings,
    Targets,
    TrainSettings,
)
from busso.train.settings.resolve import PreparedRun
from tests.chips import Chip, emulated_chip
from tests.train.defaults import lambda_targets, learner_settings, network_targets
from tests.train.runs import TrainedRuns, folder, settings

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
    stored = it.replay.state_dict()["rows"]
    stored["n_step_return"].fill_(1.0)
    stored["discount"].fill_(discount)
    stored["successor"][-1] = -1  # the last row has a successor, too, if others have
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
            assert torch.zeros(1).item() == 0 and readings.count == 1  # the counter works


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


def test_epsilon_falls_linearly() -> None:
    """Without decay it is at its end."""
    found = [*(epsilon(spent, 1.0, 0.05, 0.2) for spent in (0, 0.05, 0.1, 0.2, 1.0)), epsilon(0, 1.0, 0.1, 0)]
    assert found == pytest.approx([1.0, 0.7625, 0.525, 0.05, 0.05, 0.1])


def test_linear_is_clamped() -> None:
    assert [linear(2, 1, share) for share in (-1, 0, 0.25, 1, 2)] == [2, 2, 1.75, 1, 1]


TRESSETTE = load_game("tressette")

PHASES = [
    PhaseSettings(1000, {"study_heuristic": 0.7, "random": 0.3}),
    PhaseSettings(3000, {"study_heuristic": 1.0}),
    PhaseSettings(None, {"network": 1.0}),
]


def test_seats_follow_the_phases() -> None:
    names = player_names(PHASES)
    assert names == ["network", "study_heuristic", "random"]
    seats = seating(PHASES, names, 0, stream(1, "episodes", 0, 4000), TRESSETTE)
    first, second, third = seats[:1000], seats[1000:3000], seats[3000:]
    assert (first == 1).mean() == pytest.approx(0.7, abs=0.03)
    assert (first == 2).mean() == pytest.approx(0.3, abs=0.03)
    assert (second == 1).all() and (third == 0).all()


def test_seats_of_an_episode_do_not_depend_on_the_batch() -> None:
    names = player_names(PHASES)
    whole = seating(PHASES, names, 0, stream(1, "episodes", 0, 4000), TRESSETTE)
    for first, count in ((0, 10), (990, 20), (2999, 2), (3500, 500)):
        part = seating(PHASES, names, first, stream(1, "episodes", first, count), TRESSETTE)
        assert np.array_equal(part, whole[first : first + count])


def test_seats_of_one_episode_are_drawn_apart() -> None:
    half = [PhaseSettings(None, {"network": 0.5, "random": 0.5})]
    seats = seating(half, ["network", "random"], 0, stream(1, "episodes", 0, 4000), TRESSETTE)
    assert len(np.unique(seats, axis=0)) == 16


def test_a_side_is_drawn_for_the_whole_game() -> None:
    """The network keeps one side, the other seats have one player; before and after that, every seat is drawn."""
    mix = {"network": 0.5, "random": 0.3, "greedy": 0.2}
    phases = [PhaseSettings(1000, {"greedy": 1.0}), PhaseSettings(None, mix, SIDE)]
    names, seeds = player_names(phases), stream(1, "episodes", 0, 5000)
    seats = seating(phases, names, 0, seeds, TRESSETTE)
    assert (seats[:1000] == names.index("greedy")).all()
    games, others = seats[1000:], one_side(TRESSETTE, seeds[1000:]) == 1
    assert (games[~others] == 0).all()
    guests = games[others].reshape(-1, 2)
    assert (guests[:, 0] == guests[:, 1]).all()
    found = [np.mean(guests[:, 0] == names.index(name)) for name in mix]
    assert found == pytest.approx(list(mix.values()), abs=0.03)
    assert np.array_equal(seats[990:1010], seating(phases, names, 990, seeds[990:1010], TRESSETTE))


@pytest.fixture(autouse=True)
def _torch_threads() -> Iterator[None]:
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


def cpus(monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    monkeypatch.setattr("busso.base.system.cpus", lambda: number)


def threads_of(chosen: TrainSettings) -> object:
    return with_learner_threads(chosen).learner.threads


@pytest.mark.parametrize(
    ("number", "overrides", "threads"),
    [
        (2, ["rollout=ray"], 1),
        (3, ["rollout=ray"], 1),
        (4, ["rollout=ray"], 2),
        (64, ["rollout=ray"], 2),
        (64, ["rollout=local"], 1),
        (8, ["rollout=ray", "rollout.workers=6"], 2),
        (8, ["rollout=ray", "rollout.workers=7"], 1),
        (8, ["rollout=ray", "rollout.workers=12"], 1),
        (8, ["rollout=ray", "rollout.workers=12", "rollout.nodes=2"], 2),
        (8, ["rollout=ray", "rollout.workers=13", "rollout.nodes=2"], 1),
        (64, ["rollout=ray", "learner.threads=3"], 3),
        (2, ["rollout=local", "learner.threads=3"], 3),
    ],
)
def test_the_number_of_a_new_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, overrides: list[str], threads: int
) -> None:
    cpus(monkeypatch, number)
    assert threads_of(settings(tmp_path, *overrides)) == threads


def test_a_resumed_run_keeps_the_number(
    tmp_path: Path, trained_run: TrainedRuns, monkeypatch: pytest.MonkeyPatch
) -> None:
    trained_run("episodes=64", runs=tmp_path)
    config = folder(tmp_path) / "config.yaml"
    assert "\n  threads: 1\n" in config.read_text(), "the number, not auto"
    assert re.search(r"^device: (cpu|cuda:\d+)$", config.read_text(), re.M)
    config.write_text(config.read_text().replace("\n  threads: 1\n", "\n  threads: 2\n"))  # learner.threads=2
    local = settings(tmp_path)
    cpus(monkeypatch, 2)
    with RunFolder(local) as held, open_trainer(PreparedRun(local), held) as trainer:
        assert torch.get_num_threads() == 2 and value_at(asdict(trainer.settings), "learner.threads") == 2
    elsewhere = replace(local, rollout=replace(local.rollout, kind="ray"))
    assert (threads_of(local), threads_of(elsewhere), threads_of(replace(local, name="another"))) == (2, 1, 1)


def of(matrix: torch.Tensor, factor: float = 1.0) -> tuple[Muon, torch.nn.Linear]:
    layer = torch.nn.Linear(*reversed(matrix.shape))
    with torch.no_grad():
        layer.weight.zero_()
    layer.weight.grad, layer.bias.grad = matrix.clone(), torch.ones_like(layer.bias)
    return Muon(torch.nn.Sequential(layer), factor, torch.float32), layer


@pytest.mark.parametrize("shape", [(5, 5), (3, 7), (7, 3)])
def test_singular_values_become_about_one(shape: tuple[int, int]) -> None:
    """The singular vectors are kept, so the product with their transposes is diagonal."""
    torch.manual_seed(1)
    u, s, v = torch.linalg.svd(torch.randn(2, *shape), full_matrices=False)
    s = s.clamp(min=0.2)
    turned = u.mT @ orthogonal(u @ torch.diag_embed(s) @ v) @ v.mT
    values = turned.diagonal(dim1=1, dim2=2)
    assert torch.allclose(turned, torch.diag_embed(values), atol=1e-5)
    assert float(values.min()) > 0.63 and float(values.max()) < 1.37
    assert not orthogonal(torch.zeros(1, *shape)).any()


def test_small_singular_values_stay_small() -> None:
    """Of Gaussian matrices, 19% of singular values are below 0.7 after three steps; rounding makes none too large."""
    torch.manual_seed(1)
    matrices = torch.randn(20, 128, 128)
    values = torch.linalg.svdvals(orthogonal(matrices))
    assert 0.17 < float((values < 0.7).float().mean()) < 0.21
    assert float(values.min()) < 0.2 and float(values.max()) < 1.37
    for rounded in (matrices.bfloat16(), matrices[:, :1].mT.bfloat16() @ matrices[:, :1].bfloat16()):  # or of rank one
        assert float(torch.linalg.svdvals(orthogonal(rounded).float()).max()) < 1.4


def test_a_step_by_hand() -> None:
    """A rank-one gradient: 0.2 * sqrt(4) * 0.1 times a singular value of 1 after three polynomials."""
    gradient = torch.zeros(4, 4)
    gradient[1, 2] = -3.0
    muon, layer = of(gradient, factor=0.5)
    muon.step(0.1)
    x = 1.0
    for a, b, c in ((8.0203, -22.5827, 16.0497), (3.6872, -2.6526, 0.4966), (2.8230, -2.0374, 0.4321)):
        x = a * x + b * x**3 + c * x**5
    assert layer.weight[1, 2].item() == pytest.approx(0.5 * 0.2 * 2 * 0.1 * x, rel=1e-4)
    assert layer.weight.count_nonzero() == 1
    assert layer.weight.grad is None and layer.bias.grad.all()  # type: ignore[union-attr]
    # The momentum alone has the same direction, so the next step has the same length.
    layer.weight.grad = torch.zeros_like(layer.weight)
    muon.step(0.1)
    assert layer.weight[1, 2].item() == pytest.approx(2 * 0.5 * 0.2 * 2 * 0.1 * x, rel=1e-4)


def learned(settings: LearnerSettings, updates: int) -> Learner:
    each = filled(learner(settings), discount=0.5)
    for _ in range(updates):
        each.update()
    return each


def test_hidden_matrices_are_muons_and_the_rest_is_adams() -> None:
    """With a step of almost 0, hidden matrices stay the same and everything else learns as without Muon."""
    how = {"precision": "float32", "batch_size": 32, "ema_decay": 0.0}
    still = learned(learner_settings(**how, muon=1e-30), 1)
    adam, begun = (learned(learner_settings(**how), updates) for updates in (1, 0))
    for name, weights in still.online.state_dict().items():
        hidden = name.startswith("body") and weights.ndim == 2
        other = begun if hidden else adam
        assert torch.equal(weights, other.online.state_dict()[name]), name
        assert hidden or not torch.equal(weights, begun.online.state_dict()[name]), name
