"""Loop that plays games: seats of players, checks, rewards, interruption between decisions, games by name."""

import time
from collections import Counter

import numpy as np
import pytest
from numpy.typing import NDArray

from busso.base.errors import InputError
from busso.cards.compiled.batch import random_legal
from busso.cards.compiled.bits import bit
from busso.cards.compiled.splitmix import stream
from busso.cards.duplicate import duel
from busso.cards.game import Game, States, UnknownGameError, load_game
from busso.cards.play import Actions, ChunkedPlayer, Decisions, Player, StoppablePlayer, StoppedError, play, stoppable
from busso.cards.players import PolicyPlayer, RandomPlayer, named_player
from tests.cards.toy import TOY
from tests.errors import error_about

TRESSETTE = load_game("tressette")


class Recorder:
    """Player that delegates to another and records each question: game, seat, and cards left."""

    def __init__(self, player: Player) -> None:
        self.asked: list[tuple[int, int, int]] = []
        self._player = player

    def begin(self, seeds: NDArray[np.uint64]) -> None:
        self._player.begin(seeds)

    def act(self, decisions: Decisions) -> NDArray[np.uint8]:
        states, games = decisions.states, decisions.games
        for game in games:
            seat = int(states["turn"][game])
            self.asked.append((int(game), seat, int(states["hands"][game, seat]).bit_count()))
        return self._player.act(decisions)


class Seeded(RandomPlayer):
    """Random player that records the seeds of its generators."""

    def begin(self, seeds: NDArray[np.uint64]) -> None:
        self.seeds = seeds
        super().begin(seeds)


class Fixed:
    """Player that always takes the same action, legal or not."""

    def __init__(self, action: int) -> None:
        self._action = action

    def begin(self, seeds: NDArray[np.uint64]) -> None:
        pass

    def act(self, decisions: Decisions) -> NDArray[np.uint8]:
        games = decisions.games
        return np.full(games.size, self._action, np.uint8)


SEATINGS = {
    "teams": [[0, 1, 0, 1], [1, 0, 1, 0]],
    "one against three": [[1, 0, 0, 0], [0, 0, 0, 1]],
    "three players, everywhere": [[0, 1, 2, 0], [2, 2, 1, 0], [1, 1, 1, 1]],
}


@pytest.mark.parametrize("rows", SEATINGS.values(), ids=SEATINGS)
def test_each_seat_is_played_by_the_player_named_for_it(rows: list[list[int]]) -> None:
    seating = np.array(rows * 3, np.uint8)
    recorders = [Recorder(named_player(TRESSETTE, name)) for name in ("random", "greedy", "study_heuristic")]
    play(TRESSETTE, stream(1, "seats", 0, len(seating)), recorders, seating)
    for index, recorder in enumerate(recorders):
        own = [(int(game), int(seat)) for game, seat in np.argwhere(seating == index)]
        assert Counter(recorder.asked) == Counter((*place, cards) for place in own for cards in range(1, 11))


def test_each_player_has_a_generator_of_its_own_in_each_game() -> None:
    seeds, players = stream(1, "lots", 0, 50), [Seeded(), Seeded()]
    play(TRESSETTE, seeds, players, np.tile(np.array([0, 1, 0, 1], np.uint8), (50, 1)))
    assert np.unique([seeds, *(player.seeds for player in players)]).size == 150


def test_players_choices_reach_the_game() -> None:
    """In the toy game seat 1 plays its weakest cards, seat 0 random ones."""
    played: list[tuple[int, int]] = []

    def watch(decisions: Decisions, actions: NDArray[np.uint8], totals: NDArray[np.float32]) -> None:
        states, running = decisions.states, decisions.games
        for game, action in zip(running, actions, strict=True):
            if states["turn"][game] == 1:
                hand = int(states["hands"][game, 1])
                played.append((int(action), (hand & -hand).bit_length() - 1))

    players = [RandomPlayer(), PolicyPlayer(TOY.policies["lowest"])]
    play(TOY, stream(2, "toy", 0, 50), players, np.tile(np.array([0, 1], np.uint8), (50, 1)), watch=watch)
    assert len(played) == 150
    assert all(action == lowest for action, lowest in played)


@pytest.mark.parametrize("number", [1, 2])
def test_an_illegal_action_names_seat_and_legal_cards(number: int) -> None:
    seeds = stream(3, "illegal", 0, 1)
    leader = int(TRESSETTE.deal(seeds)[0]["turn"])
    record = TRESSETTE.record(TRESSETTE.deal(seeds)[0], [])
    legal = f"legal: {' '.join(record['hands'][leader])}"
    with error_about(InputError, "action 40", f"seat {leader}", legal):
        play(TRESSETTE, seeds, [Fixed(40)] * number, np.zeros((1, 4), np.uint8))


def test_rewards_are_those_of_the_moves() -> None:
    seeds, seating = stream(4, "rewards", 0, 30), np.zeros((30, 2), np.uint8)
    states, totals = play(TOY, seeds, [RandomPlayer()], seating, TOY.rewards["pair"])
    assert np.array_equal(totals, TOY.returns(states))
    _, nothing = play(TOY, seeds, [RandomPlayer()], seating)
    assert not nothing.any()


def test_watching_sees_what_was_earned_before() -> None:
    seen: list[float] = []

    def watch(decisions: Decisions, actions: NDArray[np.uint8], totals: NDArray[np.float32]) -> None:
        states = decisions.states
        assert np.array_equal(totals, states["points"])
        seen.append(float(totals.sum()))

    play(TOY, stream(4, "watch", 0, 10), [RandomPlayer()], np.zeros((10, 2), np.uint8), TOY.rewards["pair"], watch)
    assert seen == [0, 0, 10, 10, 20, 20]


@pytest.mark.parametrize("cut", [1, 7, 40])
def test_games_are_the_same_in_any_batch(cut: int) -> None:
    seeds, seating = stream(5, "batches", 0, 40), np.tile(np.array([0, 1, 0, 1], np.uint8), (40, 1))

    def final(game: Game, part: slice) -> States:
        players = [RandomPlayer(), named_player(game, "greedy")]
        return play(game, seeds[part], players, seating[part])[0]

    parts = [final(TRESSETTE, slice(k, k + cut)) for k in range(0, 40, cut)]
    assert np.array_equal(np.concatenate(parts), final(TRESSETTE, slice(None)))


def test_random_legal_is_even() -> None:
    mask = bit(3) | bit(17) | bit(63)
    chosen = Counter(int(random_legal(mask, bits)) for bits in stream(6, "random", 0, 3_000))
    assert set(chosen) == {3, 17, 63}
    assert all(abs(count - 1_000) < 130 for count in chosen.values())


def test_hands_as_dealt_are_played_on_in_place() -> None:
    """Deals that differ from those of the seeds, with the players' generators from the seeds."""
    seeds, seating = stream(4, "states", 0, 6), np.zeros((6, 4), np.uint8)
    states = TRESSETTE.deal(stream(4, "other", 0, 6))
    start = states.copy()
    final, _ = play(TRESSETTE, seeds, [RandomPlayer()], seating, states=states)
    assert final is states and TRESSETTE.over(states).all()
    assert np.array_equal(final["played"], start["hands"])
    again, _ = play(TRESSETTE, seeds, [RandomPlayer()], seating, states=start.copy())
    assert np.array_equal(again, final)
    other, _ = play(TRESSETTE, seeds[::-1].copy(), [RandomPlayer()], seating, states=start.copy())
    assert not np.array_equal(other, final)


class Thinking:
    """Player that takes 2 ms for each decision and plays the first card; records the batch sizes."""

    def __init__(self) -> None:
        self.asked: list[int] = []

    def begin(self, seeds: NDArray[np.uint64]) -> None:
        pass

    def act(self, decisions: Decisions) -> Actions:
        self.asked.append(decisions.games.size)
        time.sleep(0.002 * decisions.games.size)
        return np.array([int(mask & -mask).bit_length() - 1 for mask in decisions.legal.astype(object)], np.uint8)


@pytest.mark.parametrize("name", ["monte_carlo:samples:3", "cheating:tricks:2"])
def test_in_pieces_it_is_the_same_player(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    seeds, other = stream(3, "pieces", 0, 12), RandomPlayer()
    whole = duel(TRESSETTE, named_player(TRESSETTE, name), other, seeds)
    monkeypatch.setattr("busso.cards.play.LOOK_SECONDS", 0.002)  # so that interruptions are checked during the test
    pieces = stoppable(TRESSETTE, name, named_player(TRESSETTE, name), lambda: False)
    assert isinstance(pieces, ChunkedPlayer)
    cut = duel(TRESSETTE, pieces, other, seeds)
    assert np.array_equal(cut.own, whole.own) and np.array_equal(cut.other, whole.other)


@pytest.mark.parametrize("after", [0, 3])
def test_a_stop_between_two_pieces(after: int) -> None:
    player, looks = Thinking(), [False] * after + [True]
    with pytest.raises(StoppedError):
        play(TRESSETTE, stream(1, "pieces", 0, 40), [ChunkedPlayer(player, lambda: looks.pop(0))], np.zeros((40, 4)))
    assert len(player.asked) == after and not looks


def test_a_stop_between_two_rounds() -> None:
    looks = [False] * 7 + [True]
    player = stoppable(TRESSETTE, "greedy", named_player(TRESSETTE, "greedy"), lambda: looks.pop(0))
    assert isinstance(player, StoppablePlayer)
    with pytest.raises(StoppedError):
        play(TRESSETTE, stream(1, "rounds", 0, 40), [player], np.zeros((40, 4)))
    assert not looks


@pytest.mark.parametrize(
    "name", ["nope", "os", "../x", ".x", "", "a.b", "os.nope", "busso.tressette.rules", "tests", "5"]
)
def test_unknown_games(name: str) -> None:
    with error_about(UnknownGameError, "game.name"):
        load_game(name)


def test_one_action_for_each_game() -> None:
    states = TOY.deal(np.arange(3, dtype=np.uint64))
    for actions in (np.zeros(2, np.uint8), np.zeros(3, np.int64)):
        with pytest.raises(ValueError, match="expected 3 actions"):
            TOY.apply(states, actions)


def test_games_that_are_not_there() -> None:
    states = TOY.deal(np.arange(3, dtype=np.uint64))
    for games in ([3], [-1], [0, 10**6]):
        with pytest.raises(ValueError, match="no such game"):
            TOY.legal(states, np.array(games))


def test_foreign_states() -> None:
    states = load_game("tressette").deal(np.arange(3, dtype=np.uint64))
    with pytest.raises(ValueError, match="states of toy"):
        TOY.legal(states)
