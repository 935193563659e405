"""Every kernel of `cards.gpu` compiles for the GPUs of today."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from cards.game import Game, load_game
from cards.gpu import check_kernel, kernels, policy_kernel, random_kernel, reward_kernel
from tests.ptx import CHIPS, array, compiled, needs_compiler

GAMES = ("tressette", "spike", "sette_mezzo", "blackjack")
# These products are exact in float64, so that it does not matter how often they are rounded.
EXACT_PRODUCTS = {("spike", "reward weighted")}


def kernels_of(game: Game) -> Iterator[tuple[str, Any, tuple[Any, ...]]]:
    """All of a game by name, with the types of their arguments."""
    states, seeds, masks, generators = array(game.dtype), *[array(np.uint64)] * 3
    actions, illegal, words = array(np.uint8), array(np.int64), array(np.uint64, 2)
    results = array(np.float32, 2)
    found = kernels(game.rules)
    yield "deal", found.deal, (states, states, seeds)
    yield "turn", found.turn, (states, actions)
    yield "legal", found.legal, (states, masks)
    yield "observe", found.observe, (states, words)
    yield "apply", found.apply, (states, masks, actions, illegal)
    yield "returns", found.returns, (states, results)
    yield "check", check_kernel(), (masks, actions, illegal)
    yield "random", random_kernel(), (masks, generators, actions)
    for name, reward in game.rewards.items():
        rewarded = reward_kernel(game.rules.apply, reward, game.dtype)
        yield f"reward {name}", rewarded, (states, masks, actions, illegal, results)
    for name, policy in game.policies.items():
        yield f"policy {name}", policy_kernel(policy), (states, masks, generators, actions)


# The oldest chip has the fewest instructions: what compiles for it compiles for later ones, which one game shows.
OLDEST, *LATER = CHIPS
PAIRS = [*((name, OLDEST) for name in GAMES if name != "spike"), *(("sette_mezzo", chip) for chip in LATER)]
SPIKE = pytest.param("spike", OLDEST, marks=pytest.mark.slow)  # half a minute


@needs_compiler
@pytest.mark.parametrize(("name", "chip"), [*PAIRS, SPIKE])
def test_every_rule_reward_and_policy_compiles(name: str, chip: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is allocated, and no sum is fused with a product, which a CPU would round twice."""
    game = load_game(name)
    for what, kernel, arguments in kernels_of(game):
        # A reward is given a copy of the state before the action: that of Spike lies on the stack.
        ptx = compiled(kernel, arguments, chip, monkeypatch, game.dtype.itemsize if what.startswith("reward") else 0)
        if (name, what) not in EXACT_PRODUCTS:
            assert "fma." not in ptx, f"{name}: {what} rounds otherwise than a CPU"
