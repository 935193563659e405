"""Vector environments for Gymnasium: the same games as the engine, and their seats."""

from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode
from gymnasium.wrappers.vector import FlattenObservation, RecordEpisodeStatistics
from hypothesis import given
from hypothesis import strategies as st

from busso import envs
from busso.base.errors import InputError
from busso.cards.compiled.bits import unpack
from busso.cards.game import load_game
from busso.cards.play import Actions, Decisions, play
from busso.envs.observation_player import ObservationPlayer
from busso.envs.solo import SoloEnv
from busso.envs.vector import SeatsVectorEnv, next_legal
from tests.errors import error_about


class Lowest:
    """Player that takes the lowest legal action, so that games are reproducible in several ways."""

    def begin(self, seeds: np.ndarray) -> None:
        pass

    def act(self, decisions: Decisions) -> Actions:
        return np.array([(int(mask) & -int(mask)).bit_length() - 1 for mask in decisions.legal], np.uint8)


LOWEST = Lowest()


def lowest(seen: dict[str, np.ndarray]) -> np.ndarray:
    return seen["action_mask"].argmax(axis=1)


def ended_games(env: SeatsVectorEnv, steps: int) -> dict[int, list[tuple[list[float], float]]]:
    """Return results and rewards of all games of each environment, from seed 100 on, with the lowest actions."""
    seen, _ = env.reset(seed=100)
    ended: dict[int, list[tuple[list[float], float]]] = {k: [] for k in range(env.num_envs)}
    running = np.zeros(env.num_envs)
    for _ in range(steps):
        seen, reward, over, truncated, info = env.step(lowest(seen))
        assert not truncated.any()
        running += reward
        for k in np.flatnonzero(over):
            ended[k].append((info["returns"][k].tolist(), float(running[k])))
        running[over] = 0
    return ended


@pytest.mark.parametrize(
    ("game", "learner", "options"),
    [
        ("tressette", None, {"accusi": True}),
        ("tressette", [3], {"reward": "study"}),
        ("spike", [1], {"seats": 3, "hands": 2}),
        ("spike", None, {"seats": 4, "min_seats": 2, "hands": 1}),
        ("blackjack", None, {"decks": 2}),
        ("sette_mezzo", None, {}),
    ],
)
def test_environments_play_the_games_of_their_seeds(
    game: str, learner: list[int] | None, options: dict[str, Any]
) -> None:
    """And then the games that every environment of one game deals after that seed."""
    env = SeatsVectorEnv(game, num_envs=5, learner=learner, others=LOWEST, **options)
    ended = ended_games(env, 130)
    rules = load_game(game, {key: value for key, value in options.items() if key != "reward"})
    for k, games in ended.items():
        seeds = np.array([100 + k, *seeds_after(100 + k, len(games) - 1)], np.uint64)
        seating = np.zeros((seeds.size, rules.seats), np.uint8)
        reward = rules.rewards[options.get("reward", next(iter(rules.rewards)))]
        final, totals = play(rules, seeds, [LOWEST], seating, reward)
        decided = rules.over(rules.deal(seeds))
        assert [returns for returns, _ in games] == rules.returns(final).tolist()
        mine = totals[:, list(env.learner)].mean(axis=1)
        mine[decided] = rules.returns(final)[decided, 0]
        assert [earned for _, earned in games] == pytest.approx(mine.tolist(), abs=1e-5)
        assert len(games) > 2


def seeds_after(seed: int, count: int) -> list[int]:
    env = SoloEnv("blackjack")
    env.reset(seed=seed)
    seeds = []
    for _ in range(count):
        env.reset()
        seeds.append(env.table.seed)
    return seeds


def test_who_moves_and_what_it_sees() -> None:
    env = SeatsVectorEnv("tressette", num_envs=40, others="random")
    seen, info = env.reset(seed=1)
    random, moved = np.random.default_rng(2), set()
    for _ in range(60):
        seats = info["seat"]
        assert np.array_equal(seats, env.states["turn"]) and set(seats) <= {0, 2}
        moved |= set(seats.tolist())
        assert np.array_equal(seen["observation"], unpack(env.game.observe(env.states), env.game.bits))
        assert np.array_equal(seen["action_mask"], unpack(env.game.legal(env.states)[:, None], 40))
        assert np.array_equal(seen["action_mask"], info["action_mask"])
        chances = random.random(seen["action_mask"].shape) * seen["action_mask"]
        seen, _, _, _, info = env.step(chances.argmax(axis=1))
    assert moved == {0, 2}


def test_autoreset_is_in_the_same_step() -> None:
    env = SeatsVectorEnv("tressette", num_envs=3, others=LOWEST)
    assert env.metadata["autoreset_mode"] is AutoresetMode.SAME_STEP
    seen, _ = env.reset(seed=7)
    for step in range(1, 41):
        before = env.states.copy()
        seen, reward, over, _, info = env.step(lowest(seen))
        assert over.all() == over.any() == (step % 20 == 0), "a hand is 20 decisions of the team"
        assert ("final_obs" in info) == over.any() and seen["action_mask"].any(axis=1).all()
        assert np.array_equal(env.states["plays"] < before["plays"], over)
        assert over.any() or not reward.any()
        if over.any():
            assert info["_final_obs"].all() and info["_returns"].all()
            final = info["final_obs"][1]
            assert not final["observation"][:40].any() and not final["action_mask"].any(), "no card is left"
            assert env.observation_space.contains(seen) and env.single_observation_space.contains(final)
            points = info["returns"]
            assert np.allclose(reward, (points[:, 0] - points[:, 1]) / 11) and reward.any()
            assert np.allclose(info["rewards"][:, 1], -reward)


def test_what_is_handed_out_stays_as_it_is() -> None:
    env = SeatsVectorEnv("blackjack", num_envs=8)
    seen, info = env.reset(seed=1)
    kept = []
    for _ in range(12):
        seen, reward, over, truncated, info = env.step(lowest(seen))
        arrays = [*seen.values(), reward, over, truncated, *(v for v in info.values() if v.dtype != object)]
        kept += [(array, array.copy()) for array in arrays]
    assert all(np.array_equal(array, before) for array, before in kept)


def test_players_of_other_seats() -> None:
    """Each seat has its own player; the partner may differ from the opponents."""

    class Watched(Lowest):
        def __init__(self) -> None:
            self.seats: set[int] = set()

        def act(self, decisions: Any) -> Any:
            self.seats |= set(decisions.seats.tolist())
            return super().act(decisions)

    mate, left, right = Watched(), Watched(), Watched()
    env = SeatsVectorEnv("tressette", num_envs=4, learner=[0], others={2: mate, 1: left, 3: right})
    seen, info = env.reset(seed=1)
    for _ in range(12):
        assert set(info["seat"]) == {0}
        seen, _, _, _, info = env.step(lowest(seen))
    assert (mate.seats, left.seats, right.seats) == ({2}, {1}, {3})
    named = SeatsVectorEnv("tressette", num_envs=4, learner=[0], others={1: "greedy", 2: "random", 3: "greedy"})
    named.reset(seed=1)


def test_what_is_no_batch_of_actions_is_refused_and_changes_nothing() -> None:
    env = SeatsVectorEnv("tressette", num_envs=2, others=LOWEST)
    with error_about(InputError, "tressette", hint="reset()"):
        env.step(np.zeros(2, np.int64))
    with error_about(InputError, "seed"):
        env.reset(seed=[1, 2, 3])
    with error_about(InputError, "num_envs"):
        SeatsVectorEnv("tressette", num_envs=0)
    seen, _ = env.reset(seed=1)
    before = env.states.copy()
    good = lowest(seen)
    illegal = np.array([good[0], seen["action_mask"][1].argmin()])
    for wrong in (good[:1], good.astype(float), np.array([good[0], 40]), np.array([good[0], -1]), illegal):
        with pytest.raises(InputError, match=r"actions: |may not play"):
            env.step(wrong)
        assert np.array_equal(env.states, before)
    env.step(good)


def test_the_next_legal_action_is_played_for_one_that_is_not() -> None:
    env = SeatsVectorEnv("tressette", num_envs=64, others=LOWEST, strict=False)
    rng = np.random.default_rng(1)
    seen, _ = env.reset(seed=1)
    replaced = 0
    for _ in range(20):
        tried = rng.integers(0, 40, 64)
        legal = seen["action_mask"]
        wanted = [
            next(k % 40 for k in range(each, each + 40) if legal[game, k % 40]) for game, each in enumerate(tried)
        ]
        seen, _, _, _, info = env.step(tried)
        assert info["played"].tolist() == wanted
        replaced += (info["played"] != tried).sum()
    assert replaced > 640
    assert next_legal(np.array([1 << 63, 1], np.uint64), np.array([63, 63], np.uint8)).tolist() == [63, 0]


@pytest.mark.parametrize("mode", [AutoresetMode.DISABLED, "Disabled"])
def test_without_autoreset_a_game_stays_until_it_is_reset(mode: Any) -> None:
    """The games are those of the default mode, and what it calls the final observation is then the observation."""
    kinds = {"game": "spike", "num_envs": 8, "learner": [1], "others": LOWEST}
    same, env = SeatsVectorEnv(**kinds), SeatsVectorEnv(**kinds, autoreset_mode=mode)
    assert (same.autoreset_mode, env.autoreset_mode) == (AutoresetMode.SAME_STEP, AutoresetMode.DISABLED)
    assert env.metadata["autoreset_mode"] is AutoresetMode.DISABLED is not same.metadata["autoreset_mode"]
    (seen, _), (wanted, _) = env.reset(seed=3), same.reset(seed=3)
    ended = 0
    for _ in range(60):
        assert all(np.array_equal(seen[key], wanted[key]) for key in seen)
        seen, *results, info = env.step(lowest(seen))
        wanted, *expected, told = same.step(lowest(wanted))
        over = expected[1]
        assert all(np.array_equal(*pair) for pair in zip(results, expected, strict=True)) and "final_obs" not in info
        assert np.array_equal(info["seat"][~over], told["seat"][~over])
        if over.any():
            ended += over.sum()
            assert np.array_equal(info["returns"], told["returns"])
            assert all(
                np.array_equal(seen["observation"][k], told["final_obs"][k]["observation"]) for k in over.nonzero()[0]
            )
            part = np.zeros(8, bool)
            part[over.nonzero()[0][0]] = True
            before = seen["observation"]
            seen, _ = env.reset(options={"reset_mask": part})
            assert np.array_equal(seen["observation"][~part], before[~part])
            seen, _ = env.reset(options={"reset_mask": over & ~part})
    assert ended > 8
    for seed, mask in ((None, [True]), (1, over)):
        with error_about(InputError, "reset_mask"):
            env.reset(seed=seed, options={"reset_mask": mask})
    with error_about(InputError, "autoreset_mode", "SameStep or Disabled"):
        SeatsVectorEnv("spike", autoreset_mode="NextStep")


def test_gymnasiums_wrappers_of_observations_need_a_mode_without_autoreset() -> None:
    with pytest.raises((ValueError, AssertionError)):  # AssertionError in the gymnasium that RLlib pins
        FlattenObservation(gymnasium.make_vec("busso/Blackjack-v0", num_envs=2))
    flat = FlattenObservation(gymnasium.make_vec("busso/Blackjack-v0", num_envs=2, autoreset_mode="Disabled"))
    assert flat.reset(seed=1)[0].shape == (2, 93 + 2)


def test_a_batch_keeps_the_games_of_those_without_a_seed() -> None:
    """None is Gymnasium's word for an environment that goes on with its own games."""
    env = SeatsVectorEnv("tressette", num_envs=2, others=LOWEST)
    env.reset(seed=[4, 9])
    first = env.states.copy()
    env.reset()
    second = env.states.copy()
    env.reset(seed=[4, 9])
    env.reset(seed=[5, None])
    assert env.states[1] == second[1] and env.states[0] not in (first[0], second[0])
    env.reset(seed=[4, 9])
    assert np.array_equal(env.states, first)
    SeatsVectorEnv("tressette", num_envs=2).reset(seed=[None, 5])


def test_made_by_name_and_wrapped_as_usual() -> None:
    """Gymnasium's own wrapper counts episodes; each hand has 20 decisions of the team."""
    assert envs.__name__ == "busso.envs"
    env = RecordEpisodeStatistics(gymnasium.make_vec("busso/Tressette-v0", num_envs=3, others="greedy"))
    seen, _ = env.reset(seed=1)
    for _ in range(20):
        seen, _, _, _, info = env.step(lowest(seen))
    assert info["episode"]["l"].tolist() == [20, 20, 20] and np.all(np.abs(info["episode"]["r"]) <= 1)
    many = gymnasium.make_vec("busso/Blackjack-v0", num_envs=4, decks=1)
    assert many.reset(seed=0)[0]["observation"].shape == (4, 93)


@given(seed=st.integers(0, 2**63), learner=st.integers(0, 1))
def test_a_game_that_others_end_ends_with_the_next_step(seed: int, learner: int) -> None:
    """In Spike, others may fold before the learner's first decision."""
    env = FOLDING[learner]
    seen, info = env.reset(seed=seed)
    for _ in range(3):
        assert seen["action_mask"].any(axis=1).all() and set(info["seat"]) == {learner}
        undecided = env.game.legal(env.states) != 0
        assert seen["action_mask"][~undecided].all()
        seen, _, over, _, info = env.step(lowest(seen))
        assert over[~undecided].all()
        assert np.allclose(info["rewards"].sum(axis=1), 0, atol=1e-4)


class Folding(Lowest):
    def act(self, decisions: Any) -> Any:
        fold = 2
        return np.where(decisions.legal >> np.uint64(fold) & np.uint64(1), np.uint8(fold), super().act(decisions))


FOLDING = [SeatsVectorEnv("spike", 3, [learner], Folding(), hands=1) for learner in (0, 1)]


@pytest.mark.parametrize("game", ["tressette", "spike"])
def test_a_player_by_what_it_sees_is_the_player(game: str) -> None:
    """`ObservationPlayer` makes of observations and masks what players get elsewhere: packed bits and legal actions."""
    env = SeatsVectorEnv(game, num_envs=7, others="random")
    seen, _ = env.reset(seed=3)
    asked: list[Any] = []

    class Looks(Lowest):
        def act(self, decisions: Any) -> Any:
            asked.append((decisions.observation, decisions.legal))
            return super().act(decisions)

    seated = ObservationPlayer(env.game, Looks(), 7)
    for _ in range(5):
        actions = seated.act(seen)
        words, legal = asked.pop()
        assert np.array_equal(words, env.game.observe(env.states)) and np.array_equal(legal, env.game.legal(env.states))
        assert np.array_equal(actions, lowest(seen))
        one = {key: value[0] for key, value in seen.items()}
        assert ObservationPlayer(env.game, LOWEST).act_one(one) == actions[0]
        seen, _, _, _, _ = env.step(actions)
