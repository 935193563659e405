"""Conformance checks for every game, as plain functions: each takes a `Case` and raises AssertionError on failure.

They play random games and cover only what those reach; rules need tests of their own. `CHECKS` lists them all.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from busso.cards.compiled.batch import policy_loop, reward_loop
from busso.cards.compiled.splitmix import mix
from busso.cards.game import Game, Games, States
from busso.cards.hand import NO_SEEDS, Hand
from busso.cards.own.game import SEED
from busso.cards.play import Actions, Decisions, Player, play
from busso.cards.players import RandomPlayer, named_player
from busso.cards.presentation import presentation_of
from busso.cards.records import Recorder

RandomState = np.random.Generator


@dataclass(frozen=True, eq=False)
class Case:
    """Game with its options, and what the checks need to know about it.

    - `reshuffle_hidden(states, seat, random)` changes the one state in `states`, in place: it redeals what `seat`
      cannot see, consistently with all that the seat has seen;
    - `replayed_returns(result)` extracts the seats' returns from what `Game.replay` returns; None: from the last state.

    Each check plays `games` games, seeded by `seed`, and fails if one has not ended after `max_moves`.
    """

    game: Game
    reshuffle_hidden: Callable[[States, int, RandomState], None]
    replayed_returns: Callable[[dict[str, Any]], Sequence[float]] | None = None
    games: int = 48
    seed: int = 20240229
    max_moves: int = 10_000

    def seeds(self) -> NDArray[np.uint64]:
        """Return one seed per game, far apart."""
        return self.random().integers(0, 2**64, self.games, np.uint64)

    def random(self) -> RandomState:
        """Return a generator for a check's own choices."""
        return np.random.default_rng(self.seed)


class Round(NamedTuple):
    """Round of actions: the states before it, the running games, and their actions."""

    states: States
    running: Games
    actions: Actions


def played(case: Case, player: Player | None = None) -> tuple[list[Round], States]:
    """Play the case's games with `player` (random by default) in every seat; return all rounds and the final states."""
    rounds: list[Round] = []

    def watch(decisions: Decisions, actions: Actions, totals: NDArray[np.float32]) -> None:
        rounds.append(Round(decisions.states.copy(), decisions.games, actions.copy()))
        assert len(rounds) <= case.max_moves, f"{case.game.name}: no end after {case.max_moves} moves"

    seating = np.zeros((case.games, case.game.seats), np.uint8)
    try:
        final, _ = play(case.game, case.seeds(), [player or RandomPlayer()], seating, watch=watch)
    except ValueError as error:
        raise AssertionError(f"a player broke the rules, or had no legal action: {error}") from error
    return rounds, final


def _sampled_states(case: Case, rounds: list[Round], count: int) -> Iterator[tuple[States, RandomState]]:
    """Yield single states from `rounds`, each as an array of one, with a generator for variations."""
    random = case.random()
    for _ in range(count):
        chosen = rounds[random.integers(len(rounds))]
        game = random.choice(chosen.running)
        yield chosen.states[game : game + 1].copy(), random


def _expect_same(one: NDArray[Any], other: NDArray[Any], message: str) -> None:
    assert one.dtype == other.dtype and np.array_equal(one, other), message


def _expect_value_error(message: str, function: Callable[..., object], *arguments: object) -> str:
    try:
        function(*arguments)
    except ValueError as error:
        return str(error)
    raise AssertionError(message)


def same_seed_same_game(case: Case) -> None:
    """Check that a seed gives the same game in any batch and order, and that seeds differ."""
    game, seeds = case.game, case.seeds()
    states = game.deal(seeds)
    _expect_same(game.deal(seeds[::-1])[::-1], states, "a seed deals another game when the order of seeds changes")
    for k, state in enumerate(states):
        _expect_same(game.deal(seeds[k : k + 1])[0], state, "a seed deals another game when dealt alone")
    own = {*(game.dtype.names or ())} - {SEED}  # which differs between seeds in any case
    assert any(np.any(states[name] != states[name][:1]) for name in own), "all games are alike"
    _, used = played(case)
    game.loops.deal(used, seeds)
    _expect_same(used, states, "a deal into a used state leaves something of the old game in it")


def copies_are_independent(case: Case) -> None:
    """Check that a copied state plays on independently, and ends like the original under the same actions."""
    rounds, final = played(case)
    rest = rounds[len(rounds) // 2 :]
    copy, start = rest[0].states.copy(), rest[0].states.tobytes()
    for _, running, actions in rest:
        case.game.apply(copy, actions, running)
    _expect_same(copy, final, "a copied state played on ends otherwise than its original")
    assert rest[0].states.tobytes() == start, "playing a copy changed its original"


def legal_until_over(case: Case) -> None:
    """Check that there are legal actions, all within `actions`, exactly until the end, and that `turn` is a seat."""
    game, (rounds, final) = case.game, played(case)
    for number, (states, running, _) in enumerate(rounds):
        masks = game.legal(states, running)
        assert np.all(masks != 0), f"move {number}: a running game has no legal action"
        beyond = [int(mask) >> game.actions for mask in masks]
        assert not any(beyond), f"move {number}: legal beyond {game.actions} actions"
        assert np.all(states["turn"][running] < game.seats), f"move {number}: the turn is at no seat"
    assert np.all(game.legal(final) == 0), "an ended game still has legal actions"


def illegal_raises(case: Case) -> None:
    """Check that illegal actions, foreign states and wrong numbers of actions raise ValueError and change nothing."""
    game = case.game
    rounds, final = played(case)
    for number, (state, random) in enumerate(_sampled_states(case, rounds, 12)):
        legal = [action for action in range(64) if int(game.legal(state)[0]) >> action & 1]
        for action in set(range(64 if number else 256)) - set(legal):  # beyond any mask for one state
            message = _expect_rejected(game, np.concatenate([state, state]), [int(random.choice(legal)), action])
            assert f"seat {state['turn'][0]}" in message, f"the error does not name the seat: {message}"
    for action in range(game.actions):
        _expect_rejected(game, final[:1].copy(), [action])
    _expect_rejected(game, rounds[0].states.copy(), [0] * (case.games + 1))
    foreign = np.zeros(1, [("turn", np.uint8)])
    for look in (game.legal, game.observe, game.over, game.returns):
        _expect_value_error("a foreign state is taken for one of the game", look, foreign)
    _expect_rejected(game, foreign, [0])


def _expect_rejected(game: Game, states: States, actions: list[int]) -> str:
    before = states.copy()
    error = _expect_value_error(f"no ValueError for {actions}", game.apply, states, np.array(actions, np.uint8))
    _expect_same(states, before, f"the rejected actions {actions} changed a state")
    return error


def hidden_cards_do_not_matter(case: Case) -> None:
    """Check that hidden cards change neither a seat's observation, nor its legal actions, nor a policy's decision."""
    game, (rounds, _) = case.game, played(case)
    changed, shown = 0, presentation_of(game).rows
    for state, random in _sampled_states(case, rounds, 100):
        for seat in range(game.seats):
            other = state.copy()
            case.reshuffle_hidden(other, seat, random)
            changed += not np.array_equal(other, state)
            seen, seen_before = (game.observe(each, seats=np.array([seat], np.uint8)) for each in (other, state))
            _expect_same(seen, seen_before, f"seat {seat} sees hidden cards")
            rows, before = (list(shown(Hand(game, NO_SEEDS, each), seat)) for each in (other, state))
            assert game.over(state)[0] or rows == before, f"seat {seat} is shown hidden cards"
            if seat == state["turn"][0]:
                _expect_same(game.legal(other), game.legal(state), f"the legal actions of {seat} show hidden cards")
                _expect_same_decisions(game, state, other, random)
    assert changed, "reshuffle_hidden never changed a state, so nothing was checked"


def _expect_same_decisions(game: Game, state: States, other: States, random: RandomState) -> None:
    bits = random.integers(0, 2**64, 1, np.uint64)[0]
    for name, policy in game.policies.items():
        assert policy(state[0], bits) == policy(other[0], bits), f"the policy {name} knows hidden cards"


def returns_are_conserved(case: Case) -> None:
    """Check that the returns are finite, sum to `total`, and are equal within a team."""
    game, (_, final) = case.game, played(case)
    returns = game.returns(final)
    assert np.all(np.isfinite(returns)), "a return is not a number"
    if game.total is not None:
        wrong = np.flatnonzero(~np.isclose(returns.sum(axis=1), game.total))
        assert wrong.size == 0, f"returns {returns[wrong[:1]].tolist()} do not add up to {game.total}"
    for team in game.teams:
        assert np.all(returns[:, list(team)] == returns[:, [team[0]]]), f"the seats {team} of a team differ"


def batch_equals_one_by_one(case: Case) -> None:
    """Check that every batch loop matches the scalar function on single states, and leaves other games unchanged."""
    game, (rounds, final), random = case.game, played(case), case.random()
    for states, running, actions in rounds[:: max(1, len(rounds) // 8)]:
        order = random.permutation(running.size)[: max(1, running.size // 2)]
        _expect_batch_looks_like_single(game, states, running[order], random)
        _expect_batch_plays_like_single(game, states, running[order], actions[order])
    single = np.zeros((case.games, game.seats), np.float32)
    for k in range(case.games):
        game.rules.returns(final[k], single[k])
    _expect_same(game.returns(final), single, "a batch of returns differs from single ones")


def _expect_batch_looks_like_single(game: Game, states: States, games: Games, random: RandomState) -> None:
    seats, before = random.integers(0, game.seats, games.size).astype(np.uint8), states.copy()
    masks, seen, over = game.legal(states, games), game.observe(states, games, seats), game.over(states, games)
    for row, k in enumerate(games):
        words = np.zeros(game.words, np.uint64)
        game.rules.observe(states[k], seats[row], words)
        _expect_same(seen[row], words, "a batch of observations differs from a single one")
        mask = int(game.rules.legal(states[k])) & (2**64 - 1)  # -1 for 64 legal actions if `legal` returns int64
        assert int(masks[row]) == mask, "a batch of legal masks differs from a single one"
        assert bool(over[row]) == bool(game.rules.over(states[k])), "a batch of `over` differs from a single one"
    _expect_same(states, before, "looking at a state changed it")


def _expect_batch_plays_like_single(game: Game, states: States, games: Games, actions: Actions) -> None:
    after, single = states.copy(), states.copy()
    game.apply(after, actions, games)
    for k, action in zip(games, actions, strict=True):
        game.rules.apply(single[k], action)
    _expect_same(after, single, "a batch of actions differs from single ones")
    for name, reward in game.rewards.items():
        rewarded, totals, one = states.copy(), *np.zeros((2, states.size, game.seats), np.float32)
        reward_loop(game.rules.apply, reward)(rewarded, games, actions, totals)
        for k, action in zip(games, actions, strict=True):
            reward(states[k], action, after[k], one[k])
        _expect_same(rewarded, after, f"play with the reward {name} differs from play without")
        assert np.all(np.isfinite(totals)), f"the reward {name} is not a number"
        _expect_same(totals, one, f"a batch of the reward {name} differs from single ones")


def games_end(case: Case) -> None:
    """Check that every game ends within `max_moves`, with each of the game's players."""
    for name in ["random", *case.game.policies]:
        rounds, _ = played(case, named_player(case.game, name))
        assert rounds, "all games are over when they are dealt"


def observations_fit(case: Case) -> None:
    """Check that observations set no bit beyond `bits`, and are not all alike."""
    game, (rounds, final) = case.game, played(case)
    used = np.full(game.words, 2**64 - 1, np.uint64)
    used[-1] >>= np.uint64(64 * game.words - game.bits)
    different: set[bytes] = set()
    for states in [*(chosen.states for chosen in rounds), final]:
        for seat in range(game.seats):
            seen = game.observe(states, seats=np.full(case.games, seat, np.uint8))
            assert np.all(seen & ~used == 0), f"seat {seat}: an observation has bits beyond {game.bits}"
            different.update(row.tobytes() for row in seen)
    assert len(different) > 1, "all observations are alike"


def policies_play_legally(case: Case) -> None:
    """Check that policies play legal actions, depend only on state and random bits, and change no state."""
    for name, policy in case.game.policies.items():
        rounds, _ = played(case, named_player(case.game, name))
        for states, running, _ in rounds[:: max(1, len(rounds) // 8)]:
            before, generators = states.copy(), case.seeds()
            actions = np.empty(running.size, np.uint8)
            policy_loop(policy)(states, running, generators, actions)
            alone = [int(policy(states[k], np.uint64(mix(generators[k])))) for k in running]
            assert actions.tolist() == alone, f"{name} decides otherwise in a batch than alone"
            _expect_same(states, before, f"{name} changes the state")


def records_replay(case: Case) -> None:
    """Check that a game written as JSON and replayed ends with the same returns."""
    game, recorder = case.game, Recorder(case.game, case.games)
    start, seating = game.deal(case.seeds()), np.zeros((case.games, case.game.seats), np.uint8)
    final, _ = play(game, case.seeds(), [RandomPlayer()], seating, watch=recorder.watch)
    for k, returns in enumerate(game.returns(final)):
        record = json.loads(json.dumps(recorder.take(k, start[k])))
        assert record["game"] == game.name, f"the record names the game {record['game']}"
        hands, result = game.read(record)
        found = case.replayed_returns(result) if case.replayed_returns else result.get("returns")
        replayed = list(found) if found is not None else game.returns(hands[-1].state)[0].tolist()
        assert replayed == returns.tolist(), f"replayed {replayed}, played {returns.tolist()}"


CHECKS: tuple[Callable[[Case], None], ...] = (
    same_seed_same_game,
    copies_are_independent,
    legal_until_over,
    illegal_raises,
    hidden_cards_do_not_matter,
    returns_are_conserved,
    batch_equals_one_by_one,
    games_end,
    observations_fit,
    policies_play_legally,
    records_replay,
)
