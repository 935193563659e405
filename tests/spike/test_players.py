"""Players without a network and searches with one: choices and relative strength."""

from collections import Counter
from collections.abc import Iterator

import numpy as np
import pytest
from numpy.typing import NDArray

from busso.cards.compiled.splitmix import stream
from busso.cards.duplicate import duel
from busso.cards.game import Game, States, load_game
from busso.cards.play import Decisions, play
from busso.cards.players import SampleOptions, named_player
from busso.spike.cards import CARDS, NO_CARD
from busso.spike.policies import best_exchange, cautious, initial
from busso.spike.rules import apply
from busso.spike.search import draw_unseen, monte_carlo, unseen
from busso.spike.state import OVER
from tests.spike.hands import dealt
from tests.spike.hidden import reshuffle_hidden
from tests.spike.test_rules import played

BITS = np.uint64(0)


def test_initial_matches_and_never_buys() -> None:
    assert initial(played([], []), BITS) == 1
    assert initial(played([], [1, 1]), BITS) == 4
    assert initial(played([], [1, 1, 3]), BITS) == 5


@pytest.mark.parametrize(
    ("cards", "bought", "action"),
    [
        ((-1, 1, -1), 7, 5),  # -1 is best unchanged
        ((1, 2, 9), -3, 6),  # 12 becomes 0 without the spike card
        ((-6, 9, 7), -1, 8),  # 10 becomes 9, 16 or 0, with hand cards in ascending order
        ((-8, 1, -5), 4, 7),  # -12 becomes 0 without -8
    ],
)
def test_best_exchange(cards: tuple[int, int, int], bought: int, action: int) -> None:
    assert best_exchange(played([*dealt(cards, (9, 9, 8)), bought], [1, 1, 3])) == action


def test_cautious_bets_by_its_sum() -> None:
    assert cautious(played(dealt((3, -2, 9), (9, 9, 8)), []), BITS) == 0
    assert cautious(played(dealt((3, 4, 9), (9, 9, 8)), []), BITS) == 1
    assert cautious(played(dealt((3, 4, 9), (9, 9, 8)), [0]), BITS) == 2
    assert cautious(played(dealt((3, 4, 9), (5, 4, 9)), [0]), BITS) == 1
    # |1| does not justify a raise after three.
    assert cautious(played(dealt((3, -2, 0), (5, 0, 1)), [1, 0, 0, 0]), BITS) == 1


def test_cautious_buys_only_with_a_large_sum() -> None:
    assert cautious(played(dealt((1, 1, 1), (9, 9, 8)), [1, 1]), BITS) == 4
    assert cautious(played(dealt((1, 1, 2), (9, 9, 8)), [1, 1]), BITS) == 3


@pytest.mark.parametrize("seats", [2, 4, 8])
def test_cautious_beats_initial_beats_random(seats: int) -> None:
    game = load_game("spike", {"seats": seats})
    seeds = stream(1, "players", 0, 300)
    players = {name: named_player(game, name) for name in ("random", "initial", "cautious")}
    for better, worse in (("cautious", "initial"), ("cautious", "random"), ("initial", "random")):
        margin = duel(game, players[better], players[worse], seeds).points
        assert margin.mean > margin.half_width, (better, worse)


TWO = load_game("spike")
TABLES = [TWO, load_game("spike", {"seats": 5, "raise_cap": 2, "sabacc_pot": True})]


def positions(game: Game, deals: int, every: int) -> Iterator[States]:
    """Yield states of games between the legal actions and `cautious`."""
    kept: list[States] = []
    seeds, players = stream(1, "positions", 0, deals), [named_player(game, "cautious"), named_player(game, "random")]
    seating = np.tile(np.arange(game.seats, dtype=np.uint8) % 2, (deals, 1))
    play(game, seeds, players, seating, watch=lambda decisions, *_: kept.append(decisions.states[decisions.games]))
    for states in kept[::every]:
        for k in range(states.size):
            yield states[k : k + 1].copy()


def choice(game: Game, states: States, seed: NDArray[np.uint64], samples: int) -> int:
    player = monte_carlo(game, SampleOptions(samples))
    player.begin(seed)
    return int(player.act(Decisions(game, states, np.array([0])))[0])


@pytest.mark.parametrize("game", TABLES, ids=lambda game: f"{game.seats} seats")
def test_a_seat_sees_no_difference_in_what_is_drawn(game: Game) -> None:
    generators = stream(2, "draws", 0, 1)
    for states in positions(game, 10, 7):
        before = states.copy()
        draw_unseen(states[0], generators, 0)
        assert np.array_equal(game.observe(states), game.observe(before))
        state, left = states[0], int(states[0]["drawn"])
        open_cards = [card for card in range(CARDS) if int(state["discards"]) >> card & 1]
        on_table = [int(card) for card in [*state["spikes"], state["bought"]] if card != NO_CARD]
        hands = state["hands"][: int(state["players"])].ravel().tolist()
        # Every card occurs exactly once.
        assert sorted([*open_cards, *on_table, *hands, *state["deck"][left:].tolist()]) == list(range(CARDS))
        assert np.all(state["hands"][:, 0] <= state["hands"][:, 1])


def test_every_unseen_card_is_drawn_as_often() -> None:
    generators, samples = stream(3, "draws", 0, 1), 20_000
    states = next(states for states in positions(TWO, 3, 4) if states[0]["round"] == 2)
    seat = int(states[0]["turn"])
    cards = unseen(states[0], seat)
    hidden = [card for card in range(CARDS) if int(cards) >> card & 1]
    held, dice = Counter[int](), Counter[tuple[int, int]]()
    for _ in range(samples):
        drawn = states.copy()
        draw_unseen(drawn[0], generators, 0)
        held.update(drawn[0]["hands"][1 - seat].tolist())
        dice[tuple(drawn[0]["dice"][2].tolist())] += 1
    assert set(held) == set(hidden) and len(dice) == 36
    for counts, things, probability in ((held, hidden, 2 / len(hidden)), (dice, dice, 1 / 36)):
        bound = 5 * np.sqrt(samples * probability * (1 - probability))
        assert all(abs(counts[thing] - samples * probability) < bound for thing in things)


@pytest.mark.parametrize("game", TABLES, ids=lambda game: f"{game.seats} seats")
def test_the_choice_has_the_best_mean(game: Game) -> None:
    for number, states in enumerate(positions(game, 4, 9)):
        seed = stream(4, "generators", number, 1)
        found = choice(game, states, seed, 20)
        legal = [action for action in range(9) if int(game.legal(states)[0]) >> action & 1]
        seat, totals = int(states[0]["turn"]), dict.fromkeys(legal, 0)
        for _ in range(20):
            drawn = states.copy()
            draw_unseen(drawn[0], seed, 0)
            for action in legal:
                totals[action] += credits_after(drawn[0].copy(), action, seat)
        usual = cautious(states[0], np.uint64(0))
        best = max(totals.values())
        assert found == (usual if totals[usual] == best else min(a for a in legal if totals[a] == best))


def credits_after(state: np.void, action: int, seat: int) -> int:
    """Return the seat's credits after the pool of this hand is paid out."""
    hand = int(state["hands_played"])
    while True:
        apply(state, action)
        if state["phase"] == OVER:
            return int(state["credits"][seat])
        if state["hands_played"] != hand:
            return int(state["stakes"][seat])
        action = cautious(state, np.uint64(0))


@pytest.mark.parametrize("game", TABLES, ids=lambda game: f"{game.seats} seats")
def test_what_it_cannot_see_does_not_matter(game: Game) -> None:
    random, changed = np.random.default_rng(5), 0
    for number, states in enumerate(positions(game, 6, 6)):
        other = states.copy()
        reshuffle_hidden(other, int(states[0]["turn"]), random)
        changed += int(np.any(other["hands"] != states["hands"]))
        seed = stream(6, "generators", number, 1)
        assert choice(game, other, seed, 10) == choice(game, states, seed, 10)
    assert changed > 10


def test_it_beats_cautious() -> None:
    seeds = stream(7, "duel", 0, 200)
    result = duel(TWO, named_player(TWO, "monte_carlo"), named_player(TWO, "cautious"), seeds)
    assert result.points.mean > result.points.half_width
