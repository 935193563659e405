"""Hands and rewards worked by hand: showdowns, betting, buying, dice, reshuffles, all-in."""

import itertools
from collections import Counter
from collections.abc import Generator
from typing import Any

import numpy as np
import pytest

from busso.base.errors import InputError
from busso.cards.compiled.bits import unpack
from busso.cards.compiled.splitmix import stream
from busso.cards.game import States, load_game
from busso.cards.play import Decisions, Player, play
from busso.cards.players import RandomPlayer, named_player
from busso.cards.records import Recorder
from busso.spike import GAME
from busso.spike.cards import NO_CARD, VALUES
from busso.spike.rules import REWARDS, apply, open_hand, proceed, to_match
from busso.spike.state import NO_SEAT, OVER, STATE, Options, blank, settle
from tests.spike.hands import dealt, deck, hand
from tests.spike.reference import Hand, Rules, Script

Cards = tuple[int, int, int]


def winner(*cards: Cards, **changes: Any) -> int:
    result = GAME.replay(hand(*dealt(*cards), players=len(cards), **changes))
    return int(result["winner"])


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ((3, -2, 0), (4, -2, 0)),  # |1| before |2|
        ((-5, 4, 0), (1, 4, -3)),  # |-1| before |2|
        ((5, -3, 0), (-5, 3, 0)),  # 2 before -2
        ((7, -5, 0), (5, -3, 0)),  # both 2, of 7 and of 5 in positive cards
        ((4, 4, -7), (6, 1, -6)),  # both 1, of 8 and of 7 in positive cards
        ((6, 2, -7), (5, 3, -7)),  # both 1 of 8, the greater single card
        ((9, -9, 0), (8, -8, 0)),  # both 0, of 9 and of 8
        ((2, -1, -1), (-1, 0, 0)),  # 0 before |-1|
    ],
)
def test_the_better_hand_wins_in_either_seat(first: Cards, second: Cards) -> None:
    assert winner(first, second) == 0
    assert winner(second, first) == 1


def test_lot_decides_between_fully_tied_seats() -> None:
    tied = (5, -3, -1)
    worse = (5, -3, 1)
    assert [winner(tied, worse, (5, -3, -1), tie_break=lot) for lot in range(4)] == [0, 2, 0, 2]
    assert [winner((5, -3, -1), (5, -3, -1), (5, -3, -1), tie_break=lot) for lot in (0, 4, 8)] == [0, 1, 2]


SPECIAL = {"options": {"special_hands": True}}


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ((0, 0, 5), (10, -10, 1)),  # pure sabacc beats anything, whatever the third card
        ((0, 0, 5), (9, -8, -1)),
        ((10, -10, 0), (9, -9, 0)),  # prime sabacc beats yee-haa
        ((1, -1, 0), (10, -7, -3)),  # yee-haa beats an ordinary zero
    ],
)
def test_special_hands(first: Cards, second: Cards) -> None:
    assert winner(first, second, **SPECIAL) == 0
    assert winner(second, first, **SPECIAL) == 1


def played(front: list[int], actions: list[int], credits: tuple[int, ...] = (50, 50), **changes: Any) -> np.void:
    """Return the state after some actions of a hand that begins with these cards."""
    state = np.array([blank(Options(hands=1))], STATE)
    state["players"] = len(credits)
    state["credits"][0, : len(credits)] = credits
    left = list(range(62))
    cards = []
    for value in deck(*front):
        cards.append(next(card for card in left if VALUES[card] == value))
        left.remove(cards[-1])
    state["deck"] = cards
    state["ordered"] = 62
    state["dice"] = [[1, 2], [3, 4], [5, 6]]
    for name, value in changes.items():
        state[name] = value
    open_hand(state[0])
    proceed(state[0])
    for action in actions:
        apply(state[0], action)
    return state[0]


def cards_of(mask: int) -> list[int]:
    return [card for card in range(62) if mask >> card & 1]


def test_equal_dice_replace_the_hands_but_not_the_spikes() -> None:
    front = [*dealt((6, 2, 5), (9, 9, 9)), -1, -2, -3, -4]
    state = played(front, [1, 1, 4, 4, 1, 1], dice=[[3, 3], [1, 2], [1, 2]])
    assert VALUES[state["hands"][:2]].tolist() == [[-3, -1], [-4, -2]]
    assert VALUES[state["spikes"][:2]].tolist() == [5, 9]
    assert sorted(VALUES[cards_of(int(state["discards"]))].tolist()) == [2, 6, 9, 9]


def test_reshuffle_without_a_seed_puts_the_discards_under_the_deck() -> None:
    # Eight seats leave 38 cards; a double takes 16; with 22 left, the next dice reshuffle the discards.
    quiet = [1] * 8 + [4] * 8 + [1] * 8
    state = played([], quiet, (50,) * 8, dice=[[2, 2], [1, 2], [1, 2]])
    assert state["drawn"] == 40 and len(cards_of(int(state["discards"]))) == 16
    before = state["deck"].copy()
    for action in [4] * 8 + [1] * 8:
        apply(state, action)
    assert state["drawn"] == 24 and state["discards"] == 0
    assert state["deck"][24:46].tolist() == before[40:].tolist()
    assert state["deck"][46:].tolist() == sorted(state["deck"][46:].tolist())


def test_raise_cap() -> None:
    game = load_game("spike", {"raise_cap": 1})
    states = game.deal(np.array([1], np.uint64))
    game.apply(states, np.array([0], np.uint8))
    assert game.legal(states)[0] == 0b110


def test_the_deal_of_a_seed_stays() -> None:
    """On all platforms and in all versions, as guaranteed for environments and records."""
    game = load_game("spike", {"hands": 1})
    record = game.record(game.deal(np.array([1440], np.uint64))[0], [])
    assert record["deck"][:8] == [10, 6, -7, 3, -3, -6, 10, 5]
    assert (record["dice"], record["tie_break"]) == ([[5, 5], [5, 1], [6, 5]], 438)


def test_number_of_players_is_drawn_for_each_game() -> None:
    game = load_game("spike", {"seats": 8, "min_seats": 2})
    states = game.deal(np.arange(2000, dtype=np.uint64))
    counts = np.bincount(states["players"], minlength=9)
    assert (counts[:2] == 0).all() and (counts[2:] > 200).all()
    final, _ = play(game, np.arange(50, dtype=np.uint64), [RandomPlayer()], np.zeros((50, 8), np.uint8))
    assert game.returns(final).sum(1).tolist() == [0.0] * 50
    for state, row in zip(final, game.returns(final), strict=True):
        assert (row[state["players"] :] == 0).all()


@pytest.mark.parametrize("options", [{}, {"seats": 8, "min_seats": 3, "rotate": True}], ids=["two", "three to eight"])
def test_each_hand_of_a_match_is_the_same_whatever_was_played_before(options: dict[str, Any]) -> None:
    """Therefore both plays of a duplicate deal have the same cards and dice in all hands."""
    game = load_game("spike", options)
    seeds, seating = np.arange(20, dtype=np.uint64), np.zeros((20, game.seats), np.uint8)
    recorders = [Recorder(game, seeds.size) for _ in range(3)]
    for recorder, player in zip(recorders, ("initial", "cautious", "random"), strict=True):
        play(game, seeds, [named_player(game, player)], seating, watch=recorder.watch)
    shared = set()
    for k, start in enumerate(game.deal(seeds)):
        plays = zip(*(recorder.take(k, start)["hands"] for recorder in recorders), strict=False)
        for number, hands in enumerate(plays):
            for name in ("deck", "dice", "tie_break"):
                assert all(hand[name] == hands[0][name] for hand in hands)
            shared.add((number, tuple(hands[0]["deck"])))
    assert len(shared) == len({cards for _, cards in shared}) > 50  # and all hands are different
    assert {number for number, _ in shared} >= {0, 1, 2}


def bad(options: dict[str, Any]) -> str:
    """Return the option named in the error."""
    with pytest.raises(InputError) as error:
        GAME.configure(options)
    return error.value.key.removeprefix("game.")


def test_bad_options_are_named() -> None:
    for seats in (9, 10**30, 2.5, 1):
        assert bad({"seats": seats}) == "seats"
    assert bad({"seats": 4, "min_seats": 5}) == "min_seats"
    assert bad({"credits": 51}) == "credits" and bad({"ante": 60}) == "credits"
    assert bad({"bet": 3}) == "bet"
    assert bad({"rotate": 1}) == "rotate"
    assert bad({"hands": 0}) == "hands"
    assert bad({"chairs": 3}) == "chairs"


def earned(reward: str, before: np.void, action: int) -> list[float]:
    after = np.array([before], STATE)
    apply(after[0], action)
    totals = np.zeros(2, np.float32)
    REWARDS[reward](before, action, after[0], totals)
    return totals.tolist()


FRONT = [*dealt((6, 2, 5), (1, 0, -1)), -8]


def test_credits() -> None:
    assert earned("credits", played(FRONT, []), 0) == [-2, 0]
    assert earned("credits", played(FRONT, []), 1) == [0, 0]
    assert earned("credits", played(FRONT, [0]), 1) == [0, -2]
    assert earned("credits", played(FRONT, [1, 1]), 3) == [-2, 0]
    assert earned("credits", played(FRONT, [1, 1]), 4) == [0, 0]
    # Seat 0 folds to a raise: seat 1 wins the pool of two antes and the raise.
    assert earned("credits", played(FRONT, [1, 0]), 2) == [0, 6]


def test_an_all_in_seat_pays_what_it_has() -> None:
    assert earned("credits", played(FRONT, [0], (50, 3), bet=6), 1) == [0, -1]
    assert earned("weighted", played(FRONT, [0], (50, 3), bet=6), 1) == [0, -2]  # |1 + 0| = 1


def test_weighted() -> None:
    assert earned("weighted", played(FRONT, []), 0) == [-2 * (1 + 8), 0]
    assert earned("weighted", played(FRONT, []), 1) == [0, 0]
    assert earned("weighted", played(FRONT, [0]), 1) == [0, -2 * (1 + 1)]
    # With its spike card seat 0 has 6 + 2 + 5 = 13.
    assert earned("weighted", played(FRONT, [1, 1, 4, 4]), 0) == [-2 * (1 + 13), 0]
    # It buys -8: of 13, 0 (for 5), 3 (for 2), -1 (for 6), the least in absolute value is 0.
    assert earned("weighted", played(FRONT, [1, 1]), 3) == [-2, 0]
    assert earned("weighted", played([*FRONT[:-1], -6], [1, 1]), 3) == [-2 * (1 + 0.75 * 1), 0]
    assert earned("weighted", played(FRONT, [1, 1, 3]), 5) == [0, 0]
    assert earned("weighted", played(FRONT, [1, 0]), 2) == [0, 31 * 6]


def test_stack_comes_at_the_end_of_each_hand() -> None:
    game = load_game("spike", {"hands": 3})
    states = game.deal(np.array([4], np.uint64))
    before = states.copy()
    totals = np.zeros(2, np.float32)
    for action in (0, 2):  # seat 0 wins the ante of seat 1
        before[:] = states
        game.apply(states, np.array([action], np.uint8))
        REWARDS["stack"](before[0], action, states[0], totals)
    assert totals.tolist() == pytest.approx([2 / 50, -2 / 50])


@pytest.mark.parametrize("seats", [2, 5])
def test_stack_adds_up_to_the_returns(seats: int) -> None:
    game = load_game("spike", {"seats": seats})
    seeds = np.arange(100, dtype=np.uint64)
    final, totals = play(game, seeds, [RandomPlayer()], np.zeros((100, seats), np.uint8), REWARDS["stack"])
    assert np.allclose(totals, game.returns(final) / 50, atol=1e-5)


class Bold:
    """Player of the first legal action, which raises and buys whenever possible."""

    def begin(self, seeds: Any) -> None:
        pass

    def act(self, decisions: Decisions) -> Any:
        return np.array([(mask & -mask).bit_length() - 1 for mask in decisions.legal.tolist()], np.uint8)


@pytest.mark.parametrize(
    ("options", "player", "games", "greatest"),
    [
        ({}, RandomPlayer(), 100, 50),
        ({"seats": 3, "credits": 6, "ante": 4}, RandomPlayer(), 100, 6),
        # In a long match a seat wins more than 16 bits hold, with only 4,000 credits in play.
        ({"credits": 2000, "bet": 30, "ante": 30, "hands": 255, "raise_cap": 1}, Bold(), 20, 32_768),
    ],
    ids=["default", "few credits", "many pools"],
)
def test_credits_add_up_to_the_returns_and_the_antes(
    options: dict[str, Any], player: Player, games: int, greatest: int
) -> None:
    game = load_game("spike", options)
    seeds = np.arange(games, dtype=np.uint64)
    antes = np.zeros(games)
    seen = np.zeros(games, np.int64)

    def watch(decisions: Decisions, actions: Any, totals: Any) -> None:
        states, running = decisions.states, decisions.games
        new = (states["hands_played"][running] + 1 > seen[running]).nonzero()[0]
        for k in running[new]:
            seen[k] = states["hands_played"][k] + 1
            stakes = states["stakes"][k][: game.seats]
            antes[k] += np.minimum(stakes, game.options.ante).sum()

    seating = np.zeros((games, game.seats), np.uint8)
    final, totals = play(game, seeds, [player], seating, REWARDS["credits"], watch)
    assert np.allclose(totals.sum(1), antes)
    assert final["winnings"].max() >= greatest and final["winnings"].min() >= 0


PHASES = {"bet": 0, "buy": 1, "exchange": 2}


class Match:
    """Match of the second implementation; random events of a hand are read from the engine at the deal."""

    def __init__(self, state: States, rules: Rules, hands: int, rotate: bool) -> None:
        self.rules, self.limit, self.rotate = rules, hands, rotate
        self.credits = [int(state[0]["start_credits"])] * int(state[0]["players"])
        self.second_pot = 0
        self.hands: list[Hand] = []
        self.won = [0] * len(self.credits)
        self.begin(state)

    def begin(self, state: States) -> None:
        copy = state.copy()
        settle(copy[0])
        dice = [(int(a), int(b)) for a, b in copy[0]["dice"]]
        script = Script(VALUES[copy[0]["deck"]].tolist(), dice, int(copy[0]["lot"]), int(copy[0]["shuffle"]))
        first = len(self.hands) % len(self.credits) if self.rotate else 0
        self.hand = Hand(self.rules, self.credits, script, first, self.second_pot)
        self.hands.append(self.hand)
        self.flow: Generator[None, int, None] = self.hand.play()
        next(self.flow)

    def over(self) -> bool:
        return self.hand.done() and (len(self.hands) == self.limit or 0 in self.credits)

    def play(self, action: int, after: States) -> None:
        try:
            self.flow.send(action)
        except StopIteration:
            self.won[self.hand.winner] += 1
            self.second_pot = self.hand.second_pot
            if not self.over():
                self.begin(after)


def expect_same(state: np.void, told: dict[str, Any], match: Match) -> None:
    """Compare; `told` has the fields of the state in plain Python, and the `legal` actions as a mask."""
    n = len(match.credits)
    assert (told["phase"] == OVER) == match.over()
    assert told["credits"][:n] == match.credits
    assert told["hands_won"][:n] == match.won
    assert told["second_pot"] == match.hand.second_pot
    if match.over():
        assert told["legal"] == 0
        return
    hand = match.hand
    hand.check_cards()
    assert told["legal"] == sum(1 << action for action in hand.legal())
    assert told["turn"] == hand.turn
    assert told["pool"] == hand.pool
    assert told["round"] == hand.round
    assert told["phase"] == PHASES[hand.phase]
    assert int(to_match(state)) == (hand.rules.bet if hand.raises else 0)
    assert told["raiser"] == (NO_SEAT if hand.raiser is None else hand.raiser)
    for seat in range(n):
        assert bool(told["in_hand"] >> seat & 1) == (seat not in hand.folded)
        assert [value(card) for card in told["hands"][seat]] == hand.hands[seat]
        assert value(told["spikes"][seat]) == hand.spikes[seat]
    assert value(told["bought"]) == hand.bought
    discards = [card for card in range(VALUES.size) if told["discards"] >> card & 1] if told["discards"] else []
    assert Counter(value(card) for card in discards) == Counter(hand.discards)


CARD_VALUES: list[int] = VALUES.tolist()
TABLE = ("phase", "turn", "round", "raiser", "in_hand", "pool", "second_pot", "credits", "hands_won")
FIELDS = (*TABLE, "hands", "spikes", "bought", "discards")


def value(card: int) -> int | None:
    return None if card == NO_CARD else CARD_VALUES[card]


PATIENT = [0.25, 0.7, 0.05, 0.7, 0.3, 0.25, 0.25, 0.25, 0.25]  # folds rarely, so that decks run low
EVEN = [1.0] * 9


@pytest.mark.parametrize(
    ("options", "weights", "matches"),
    [
        ({"seats": 2}, EVEN, 120),
        ({"seats": 4}, EVEN, 100),
        ({"seats": 8}, EVEN, 60),
        ({"seats": 2}, PATIENT, 100),
        ({"seats": 8}, PATIENT, 60),
        ({"seats": 8, "min_seats": 2, "rotate": True, "raise_cap": 2, "bet": 6, "ante": 4}, PATIENT, 60),
        ({"seats": 3, "sabacc_pot": True, "special_hands": True, "credits": 20}, PATIENT, 100),
    ],
    ids=["2", "4", "8", "2 patient", "8 patient", "options", "pots"],
)
def test_every_decision(options: dict[str, Any], weights: list[float], matches: int) -> None:
    game = load_game("spike", options)
    random = np.random.default_rng(5)
    states = game.deal(stream(5, "reference", 0, matches))
    names = ("ante", "bet", "raise_cap", "sabacc_pot", "special_hands")
    rules = Rules(**{name: getattr(game.options, name) for name in names})
    references = [Match(states[k : k + 1], rules, game.options.hands, game.options.rotate) for k in range(matches)]
    reshuffles = all_in = 0
    for number in itertools.count():
        if game.over(states).all():
            break
        running = np.flatnonzero(~game.over(states))
        masks = game.legal(states)
        legal = unpack(masks[running, None], 9) * weights
        chosen = (legal.cumsum(1) > random.random((running.size, 1)) * legal.sum(1, keepdims=True)).argmax(1)
        game.apply(states, chosen.astype(np.uint8), running)
        columns = {name: states[name][running].tolist() for name in FIELDS}
        columns["legal"] = game.legal(states)[running].tolist()
        for row, (k, action) in enumerate(zip(running.tolist(), chosen.tolist(), strict=True)):
            match = references[k]
            hand = match.hand
            match.play(action, states[k : k + 1])
            expect_same(states[k], {name: column[row] for name, column in columns.items()}, match)
            if hand.done():
                reshuffles += hand.reshuffles
                all_in += 0 in [c for seat, c in enumerate(match.credits) if seat != hand.winner]
        some = [k for k in running[number % 8 :: 8] if not references[k].over()]
        observed = [(k, seat) for k in some for seat in range(game.seats)]
        games, seats = np.array(observed, np.int64).reshape(-1, 2).T
        seen = unpack(game.observe(states, games, seats.astype(np.uint8)), game.bits)
        for row, (k, seat) in zip(seen.astype(bool), observed, strict=True):
            left = references[k].limit - len(references[k].hands)
            assert row.tolist() == references[k].hand.observation(seat, left)
    if options == {"seats": 8} and weights is PATIENT:
        assert reshuffles > 20
    if weights is PATIENT:
        assert all_in > 5
