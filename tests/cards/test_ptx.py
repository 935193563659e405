"""Every kernel of `cards.gpu` compiles for the GPUs of today; needs no GPU, but numba-cuda and its compiler."""

import importlib.util
import re
from collections.abc import Iterator
from typing import Any

import numba
import pytest
from numba import cuda, types

from cards.game import Game, load_game
from cards.gpu import check_kernel, kernels, policy_kernel, random_kernel, reward_kernel

CHIPS = {"A100": (8, 0), "L40": (8, 9), "H100": (9, 0)}
GAMES = ("tressette", "spike", "sette_mezzo", "blackjack")
U8, U64, I64, F32, BOOL = types.uint8, types.uint64, types.int64, types.float32, types.boolean
# These products are exact in float64, so that it does not matter how often they are rounded.
EXACT_PRODUCTS = {("spike", "reward weighted")}

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("numba_cuda") is None, reason="numba-cuda is not installed: pip install 'busso[gpu]'"
)


def array(of: Any, dimensions: int = 1) -> Any:
    """The type of an array argument."""
    return types.Array(of, dimensions, "C")


def compiled(game: Game) -> Iterator[tuple[str, Any, tuple[Any, ...]]]:
    """Every kernel of a game by name, with the types of its arguments."""
    states = array(numba.from_dtype(game.dtype))
    outs = (array(U8), array(U64), array(U64, 2), array(BOOL), array(F32, 2))
    action, mask, words, flag, result = outs
    illegal = array(I64)
    found = kernels(game.rules)
    yield "deal", found.deal, (states, states, mask)
    yield "turn", found.turn, (states, action)
    yield "legal", found.legal, (states, mask)
    yield "observe", found.observe, (states, words)
    yield "apply", found.apply, (states, mask, action, illegal)
    yield "over", found.over, (states, flag)
    yield "returns", found.returns, (states, result)
    yield "check", check_kernel(), (mask, action, illegal)
    yield "random", random_kernel(), (mask, mask, action)
    for name, reward in game.rewards.items():
        rewarded = reward_kernel(game.rules.apply, reward, game.dtype)
        yield f"reward {name}", rewarded, (states, mask, action, illegal, result)
    for name, policy in game.policies.items():
        yield f"policy {name}", policy_kernel(policy), (states, mask, mask, action)


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("name", GAMES)
def test_every_rule_reward_and_policy_compiles(name: str, chip: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is allocated, and no sum is fused with a product, which a CPU would round twice."""

    class Device:
        compute_capability = CHIPS[chip]

    # What a kernel calls is compiled for the device at hand; there is none.
    monkeypatch.setattr("numba.cuda.dispatcher.get_current_device", Device)
    major, minor = CHIPS[chip]
    for what, kernel, arguments in compiled(load_game(name)):
        ptx, _ = cuda.compile_ptx(kernel.py_func, types.void(*arguments), cc=CHIPS[chip])
        assert f".target sm_{major}{minor}" in ptx and ".entry" in ptx, what
        assert not re.search(r"\bmalloc\b|NRT_", ptx), f"{name}: {what} allocates"
        if (name, what) not in EXACT_PRODUCTS:
            assert "fma." not in ptx, f"{name}: {what} rounds otherwise than a CPU"
