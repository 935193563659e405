"""PettingZoo environments: PettingZoo's own tests, and the same games as the engine."""

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from pettingzoo.test import api_test, seed_test
from pettingzoo.utils.wrappers import TerminateIllegalWrapper

from busso.base.errors import InputError
from busso.cards.compiled.bits import unpack
from busso.cards.play import play
from busso.cards.players import named_player
from busso.envs import spike_v1, tressette_v0
from busso.envs.aec import SeatsEnv
from busso.tressette.cards import CARDS, card_text
from tests.errors import error_about
from tests.tressette import hidden as tressette_hidden

Make = Callable[[], SeatsEnv]
CASES: dict[str, Make] = {
    "tressette": tressette_v0.env,
    "tressette_options": lambda: tressette_v0.env(
        reward="study", signals=True, accusi=True, first_leader="four_of_denari"
    ),
    "spike": spike_v1.env,
    "spike_four": lambda: spike_v1.env(seats=4, hands=2, sabacc_pot=True, special_hands=True, raise_cap=3),
    "spike_two_to_five": lambda: spike_v1.env(seats=5, min_seats=2, hands=2, rotate=True),
}
PLAIN = ["tressette", "spike_four"]
each_case = pytest.mark.parametrize("make", CASES.values(), ids=CASES.keys())
plain_case = pytest.mark.parametrize("make", [CASES[name] for name in PLAIN], ids=PLAIN)


def chance(seen: dict[str, np.ndarray], random: np.random.Generator) -> int:
    return int(random.choice(np.flatnonzero(seen["action_mask"])))


def played(env: SeatsEnv, seed: int, random: np.random.Generator) -> list[tuple[str, dict[str, np.ndarray], int]]:
    """Play a random game and return who moved, the observations, and the actions."""
    env.reset(seed=seed)
    moves = []
    for agent in env.agent_iter():
        seen, _, over, _, _ = env.last()
        action = None if over else chance(seen, random)
        if action is not None:
            moves.append((agent, seen, action))
        env.step(action)
    return moves


@pytest.mark.filterwarnings("ignore:Observation space for each agent probably:UserWarning")
@pytest.mark.filterwarnings("ignore:Observation is not a NumPy array:UserWarning")
@pytest.mark.filterwarnings("error::UserWarning")
@plain_case
def test_the_api_as_pettingzoo_tests_it(make: Make) -> None:
    """Warnings are errors, except for two that PettingZoo raises for every environment with masks it does not know."""
    api_test(make(), num_cycles=200)


@plain_case
def test_seeds_as_pettingzoo_tests_them(make: Make) -> None:
    seed_test(make, num_cycles=100)


@each_case
def test_a_seed_is_its_game_and_masks_and_observations_are_the_rules_own(make: Make) -> None:
    env, random = make(), np.random.default_rng(3)
    game = env.game
    for seed in (7, 2**64 - 1):
        env.reset(seed=seed)
        states = game.deal(np.array([seed], np.uint64))
        while not game.over(states)[0]:
            seen, _, over, _, info = env.last()
            assert not over and env.agent_selection == f"player_{states['turn'][0]}"
            assert np.array_equal(seen["observation"], unpack(game.observe(states), game.bits)[0])
            mask = unpack(game.legal(states)[:, None], game.actions)[0]
            assert np.array_equal(seen["action_mask"], mask) and np.array_equal(info["action_mask"], mask)
            assert np.array_equal(env.action_masks(), mask)
            for seat, agent in enumerate(env.agents):
                sees = game.observe(states, seats=np.array([seat], np.uint8))
                other = env.observe(agent)
                assert np.array_equal(other["observation"], unpack(sees, game.bits)[0])
                assert agent == env.agent_selection or not other["action_mask"].any()
            everything = [env.observe(agent)["observation"] for agent in env.agents]
            everything += [np.zeros(game.bits, np.int8)] * (game.seats - env.num_agents)
            assert env.state_space.contains(env.state()) and np.array_equal(env.state(), np.concatenate(everything))
            action = chance(seen, random)
            env.step(np.int64(action))
            game.apply(states, np.array([action], np.uint8))
        assert env.agents and all(env.terminations.values()) and not any(env.truncations.values())
        assert np.array_equal(env.table.states[:1], states)


@pytest.mark.parametrize("reward", ["points", "win", "points_and_win", "study"])
def test_what_agents_earn_is_what_the_reward_says(reward: str) -> None:
    env = tressette_v0.env(reward=reward)
    env.reset(seed=5)
    earned = dict.fromkeys(env.agents, 0.0)
    random_player = named_player(env.game, "random")
    actions = []
    for agent in env.agent_iter():
        _, paid, over, _, _ = env.last()
        earned[agent] += paid
        actions.append(None if over else env.ask(random_player))
        env.step(actions[-1])

    class Replays:
        """Player that repeats the same cards."""

        def begin(self, seeds: Any) -> None:
            self._next = iter(action for action in actions if action is not None)

        def act(self, decisions: Any) -> Any:
            return np.array([next(self._next)], np.uint8)

    seating = np.zeros((1, 4), np.uint8)
    _, totals = play(env.game, np.array([5], np.uint64), [Replays()], seating, env.game.rewards[reward])
    assert list(earned.values()) == pytest.approx(totals[0].tolist(), abs=1e-5)
    assert any(earned.values())


@plain_case
def test_what_is_handed_out_stays_as_it_is(make: Make) -> None:
    env, random = make(), np.random.default_rng(1)
    env.reset(seed=4)
    kept: list[tuple[np.ndarray, np.ndarray]] = []
    for _ in env.agent_iter():
        seen, _, over, _, info = env.last()
        arrays = [*seen.values(), info["action_mask"], *env.observe(env.agents[-1]).values()]
        kept += [(array, array.copy()) for array in arrays]
        env.step(None if over else chance(seen, random))
    env.reset()
    assert all(np.array_equal(array, before) for array, before in kept)
    buffers = [env.table.observation, env.table.mask]
    assert not any(np.shares_memory(array, buffer) for array, _ in kept for buffer in buffers)


@plain_case
def test_games_after_a_seed_follow_from_it(make: Make) -> None:
    one, other = make(), make()
    seeds = []
    for env in (one, other):
        env.reset(seed=11)
        seeds.append([env.table.seed])
        for _ in range(3):
            env.reset()
            seeds[-1].append(env.table.seed)
    assert seeds[0] == seeds[1] and len(set(seeds[0])) == 4 and seeds[0][0] == 11
    unseeded = make()
    unseeded.reset()
    another = make()
    another.reset()
    assert unseeded.table.seed != another.table.seed


@plain_case
def test_an_illegal_action_is_refused_and_changes_nothing(make: Make) -> None:
    env = make()
    env.reset(seed=1)
    seen = env.last()[0]
    before = env.table.states[:1].copy()
    for action in (int(np.flatnonzero(seen["action_mask"] == 0)[0]), -1, env.game.actions, 64, 300, 2**70, None, "3D"):
        with pytest.raises(InputError, match=env.game.name) as raised:
            env.step(action)  # type: ignore[arg-type]
        assert "\n" not in str(raised.value)
        assert np.array_equal(env.table.states[:1], before)
        assert np.array_equal(env.last()[0]["observation"], seen["observation"])


def test_an_illegal_action_may_lose_instead() -> None:
    env = TerminateIllegalWrapper(tressette_v0.env(), illegal_reward=-1)
    env.reset(seed=1)
    agent = env.agent_selection
    env.step(int(np.flatnonzero(env.observe(agent)["action_mask"] == 0)[0]))
    assert env.terminations[agent] and env.rewards[agent] == -1


def test_before_and_after_a_game() -> None:
    env = tressette_v0.env()
    for wrong in (lambda: env.step(0), env.last, env.state, lambda: env.agent_selection):
        with pytest.raises((ValueError, AttributeError), match=r"reset\(\)"):
            wrong()
    assert len(played(env, 3, np.random.default_rng(0))) == CARDS and not env.agents
    final = env.observe(env.agent_selection)  # SuperSuit's wrappers look once more when all have left
    assert final["observation"].any() and not final["action_mask"].any()
    with error_about(InputError, "tressette", hint="reset()"):
        env.step(0)


def test_the_number_of_agents_is_that_of_the_game() -> None:
    env = CASES["spike_two_to_five"]()
    assert env.possible_agents == [f"player_{seat}" for seat in range(5)]
    numbers = set()
    for seed in range(40):
        env.reset(seed=seed)
        numbers.add(env.num_agents)
        assert set(env.rewards) == set(env.infos) == set(env.agents)
    assert numbers == {2, 3, 4, 5}


@plain_case
def test_render_shows_what_the_agent_to_move_may_know(make: Make) -> None:
    env, random = make(), np.random.default_rng(5)
    env.render_mode = "ansi"
    env.reset(seed=2)
    for _ in env.agent_iter():
        text = env.render()
        seen, _, over, _, _ = env.last()
        assert isinstance(text, str) and (over or f"{env.agent_selection} may play: " in text)
        env.step(None if over else chance(seen, random))
    assert "over; " in (env.render() or "")


def test_render_shows_no_card_of_others(capsys: pytest.CaptureFixture[str]) -> None:
    env = tressette_v0.env(render_mode="human")
    env.reset(seed=2)
    env.render()
    text, seat = capsys.readouterr().out, int(env.agent_selection[-1])
    hand = int(env.table.states["hands"][0, seat])
    assert all((card_text(card) in text.split()) == bool(hand >> card & 1) for card in range(CARDS) if card_text(card))
    env.step(chance(env.last()[0], np.random.default_rng(0)))
    assert "table: previous (" in capsys.readouterr().out
    assert tressette_v0.env().render() is None
    with error_about(InputError, "render_mode"):
        tressette_v0.env(render_mode="rgb_array")
    with error_about(InputError, "reward", hint="points, win, points_and_win, study"):
        tressette_v0.env(reward="money")


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))], ids=["copy", "pickle"])
def test_a_copy_is_played_by_itself_and_sees_what_it_plays(copied: Callable[[SeatsEnv], SeatsEnv]) -> None:
    """As for look-ahead search, or to send an environment to another process."""
    env, random = tressette_v0.env(), np.random.default_rng(4)
    env.reset(seed=6)
    other, before = copied(env), env.last()[0]["observation"].copy()
    for _ in range(5):
        other.step(chance(other.last()[0], random))
        states = other.table.states[:1]
        assert np.array_equal(other.last()[0]["observation"], unpack(other.game.observe(states), other.game.bits)[0])
        assert np.array_equal(other.last()[0]["action_mask"], unpack(other.game.legal(states)[:, None], CARDS)[0])
    assert np.array_equal(env.last()[0]["observation"], before)


def test_what_is_asked_follows_from_what_is_seen() -> None:
    """Independent of padding bytes of a state and of other seats' cards."""
    env, random = tressette_v0.env(), named_player(tressette_v0.env().game, "random")
    env.reset(seed=6)
    now = env.table.states
    in_bytes = now.view(np.uint8).reshape(len(now), -1)
    fields = [(at, kind.itemsize) for kind, at in (now.dtype.fields[name][:2] for name in now.dtype.names)]
    gaps = np.setdiff1d(np.arange(now.itemsize), np.concatenate([np.arange(at, at + size) for at, size in fields]))
    answers = set()
    for filling in range(30):
        in_bytes[:, gaps] = filling
        tressette_hidden.reshuffle_hidden(now[:1], int(now["turn"][0]), np.random.default_rng(filling))
        answers.add(env.ask(random))
    assert gaps.size and len(answers) == 1
