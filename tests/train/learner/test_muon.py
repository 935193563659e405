"""Muon: a step by hand, the parameters left to Adam, and NaN gradients."""

import pytest
import torch

from busso.train.learner.learner import Learner
from busso.train.learner.muon import Muon, orthogonal
from busso.train.settings.dqn import LearnerSettings
from tests.train.defaults import learner_settings
from tests.train.learner.test_learner import filled, learner


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
    assert float(values.min()) > 0.65 and float(values.max()) < 1.25
    assert not orthogonal(torch.zeros(1, *shape)).any()


def test_a_step_by_hand() -> None:
    """A rank-one gradient: 0.2 * sqrt(4) * 0.1 times a singular value of 1 after five polynomials."""
    gradient = torch.zeros(4, 4)
    gradient[1, 2] = -3.0
    muon, layer = of(gradient, factor=0.5)
    muon.step(0.1)
    x = 1.0
    for _ in range(5):
        x = 3.4445 * x - 4.7750 * x**3 + 2.0315 * x**5
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
