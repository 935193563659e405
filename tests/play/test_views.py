"""Views: their content, and no hidden information."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from busso.base.own_files import trust
from busso.cards.compiled.splitmix import stream
from busso.cards.game import Game, States, load_game
from busso.cards.hand import Hand, Move
from busso.cards.own.files import game_with
from busso.play.language import Language
from busso.play.table.session import Session
from busso.play.table.table import Setup, Table
from busso.play.views import events, page, result, view
from busso.play.views.spike import showdown
from busso.play.views.tressette import dealt
from busso.spike.cards import VALUES
from tests.blackjack.hidden import reshuffle_hidden as hidden_in_blackjack
from tests.play.people import choice, play_on, sit_down
from tests.sette_mezzo.hidden import reshuffle_hidden as hidden_in_sette_mezzo
from tests.spike.hidden import reshuffle_hidden as hidden_in_spike
from tests.tiny_game import FILE
from tests.tressette.hidden import reshuffle_hidden as hidden_in_tressette

Reshuffle = Callable[[States, int, np.random.Generator], None]
KUHN_POKER = trust(FILE).module


GAMES: dict[str, tuple[str, dict[str, Any], Reshuffle]] = {
    "tressette": ("tressette", {}, hidden_in_tressette),
    "tressette with all": ("tressette", {"signals": True, "accusi": True}, hidden_in_tressette),
    "spike": ("spike", {"seats": 4}, hidden_in_spike),
    "blackjack": ("blackjack", {}, hidden_in_blackjack),
    "blackjack of one deck": ("blackjack", {"decks": 1}, hidden_in_blackjack),
    "sette e mezzo": ("sette_mezzo", {}, hidden_in_sette_mezzo),
    "kuhn poker": (FILE, {}, KUHN_POKER.reshuffle_hidden),
}


class Reshuffled(Hand):
    """A hand in which the hidden cards of the last position (or of the deal) were reshuffled."""

    def __init__(self, hand: Hand, seat: int, reshuffle: Reshuffle, random: np.random.Generator) -> None:
        state = hand.state.copy()
        reshuffle(state, seat, random)
        super().__init__(hand.game, hand.seeds, hand.start if hand.moves else state)
        self.moves = [*hand.moves[:-1]]
        if hand.moves:
            last = hand.moves[-1]
            self.moves.append(Move(last.seat, last.action, last.before, state))
        self._look()


def dealt_hand(game: Game, seed: int) -> Hand:
    seeds = stream(seed, "view", 0, 1)
    return Hand(game, seeds, game.deal(seeds))


@pytest.mark.parametrize("name", GAMES)
def test_hidden_cards_do_not_change_what_a_person_sees(name: str) -> None:
    game_name, options, reshuffle = GAMES[name]
    game, random, changed = game_with(game_name, options), np.random.default_rng(5), 0
    for seed in range(4):
        if changed > 200:  # two hands of Tressette
            break
        hand = dealt_hand(game, seed)
        while not hand.over:
            for seat in range(game.seats):
                other = Reshuffled(hand, seat, reshuffle, random)
                changed += bool((other.state != hand.state).any())
                assert view(other, seat) == view(hand, seat)
            hand.play(int(random.choice(hand.legal)))
    assert changed > 3


def played_out(*overrides: str) -> Session:
    session = sit_down(*overrides)
    play_on(session.table)
    return session


def test_tressette_adds_up() -> None:
    hand = played_out("signals=true", "accusi=true", "seed=21").table.hand
    for number in range(40):
        part = hand.until(number)
        seen = view(part, 0)
        assert sum(map(len, seen.hand)) == seen.cards_left[0]
        assert len(seen.trick) == number % 4 and len(seen.last_trick) == (4 if number >= 4 else 0)
        assert [seat for seat, _ in seen.trick] == [(seen.leader + k) % 4 for k in range(number % 4)]
        assert seen.points == tuple(thirds // 3 for thirds in seen.thirds)
        assert bool(seen.legal) == (part.turn == 0) and set(seen.legal) <= {c for suit in seen.hand for c in suit}
    assert sum(view(hand, 0).points) == 11 and sum(view(hand, 0).tricks) == 10
    assert sorted(c for hands in dealt(hand) for suit in hands for c in suit) == sorted(
        hand.game.action_text(card) for card in range(40)
    )


def test_what_is_declared_and_signalled_is_told_once() -> None:
    """By hand: seat 1 holds three threes and no coppe, and leads the 4 of bastoni with nothing above."""
    game = load_game("tressette", {"signals": True, "accusi": True})
    names = {game.action_text(card): card for card in range(40)}
    hands = [
        ["4D", "5D", "6D", "7D", "FD", "CD", "RD", "AD", "2D", "3C"],
        ["3D", "3S", "3B", "4B", "4C", "5C", "6C", "7C", "FC", "CC"],
        ["RC", "AC", "2C", "4S", "5S", "6S", "7S", "FS", "CS", "RS"],
        ["AS", "2S", "5B", "6B", "7B", "FB", "CB", "RB", "AB", "2B"],
    ]
    state = game.deal(np.array([1], np.uint64))
    state["hands"][0] = [sum(1 << names[card] for card in cards) for cards in hands]
    state["turn"] = state["leader"] = state["opener"] = 1
    hand = Hand(game, np.array([1], np.uint64), state)
    english = Language("en")

    def told(card: str) -> list[str]:
        return [english.render(each) for each in events(hand, hand.play(names[card]))]

    assert told("3B") == ["Seat 1 declares: three 3, without coppe.", "Seat 1 plays 3B and says striscio."]
    assert told("4S") + told("2B") == ["Seat 2 plays 4S.", "Seat 3 plays 2B."]
    assert told("4D") == ["Seat 0 plays 4D.", "Seat 1 takes the trick: 3B 4S 2B 4D (thirds: 2)."]
    seen = view(hand, 0)
    assert seen.signals == ((1, "B", "striscio"),) and seen.voids == (("B",), (), ("B",), ())
    assert [english.render(each) for each in seen.accusi[1]] == ["three 3, without coppe"]
    assert seen.last_trick == ((1, "3B"), (2, "4S"), (3, "2B"), (0, "4D")) and seen.last_taker == 1
    assert told("4B") == ["Seat 1 plays 4B and says volo."]


def spike_end(seats: list[tuple[str, int]], special: bool) -> list[str]:
    """Return the text of a showdown of seats with these cards, `low high spike`."""
    game = load_game("spike", {"seats": len(seats), "special_hands": special})
    state = game.deal(np.array([3], np.uint64))[0]
    first = {int(value): k for k, value in reversed(list(enumerate(VALUES)))}
    for seat, (cards, _) in enumerate(seats):
        low, high, spike = (first[int(value)] for value in cards.split())
        state["hands"][seat], state["spikes"][seat] = (low, high), spike
    return [Language("en").render(each) for each in showdown(state)]


@pytest.mark.parametrize(
    ("seats", "special", "rule"),
    [
        ([("-3 2 4", 3), ("-3 2 2", 1)], False, "the sum nearest to 0"),
        ([("-5 2 2", -1), ("-3 2 2", 1)], False, "of equal distances the positive sum"),
        ([("-3 2 2", 1), ("-6 3 4", 1)], False, "of equal sums the greater sum of positive cards"),
        ([("-4 2 3", 1), ("-4 1 4", 1)], False, "the highest single card"),
        ([("0 10 -10", 0), ("-2 1 1", 0)], True, "the higher special hand"),
        ([("-3 2 2", 1), ("-3 2 2", 1)], False, "a complete tie, by lot"),
    ],
)
def test_the_rule_that_decided_a_showdown(seats: list[tuple[str, int]], special: bool, rule: str) -> None:
    *shown, last = spike_end(seats, special)
    for seat, ((cards, total), told) in enumerate(zip(seats, shown, strict=True)):
        assert told == f"Seat {seat} shows {' '.join(f'{int(value):+d}' for value in cards.split())}: {total:+d}."
    assert last.endswith(f"wins the pool: {rule}.")


def test_the_log_of_spike_tells_every_hand_to_its_end() -> None:
    hand = played_out("game=spike", "seats=3", "hands=4", "seed=5").table.hand
    told = [each for move in hand.moves for each in events(hand, move)]
    ends = [each for each in told if each.key in ("event.wins", "event.others_folded")]
    begins = [each for each in told if each.key == "event.next_hand"]
    played = int(hand.state[0]["hands_played"])
    assert len(ends) == played and [each.values["hand"] for each in begins] == list(range(2, played + 1))
    assert view(hand, 0).log == tuple(told[told.index(begins[-1]) + 1 :])


@pytest.mark.parametrize("game", ["blackjack", "sette_mezzo"])
def test_a_small_game_is_told_card_by_card(game: str) -> None:
    english = Language("en")
    for seed in range(6):
        table = sit_down(f"game={game}", f"seed={seed}").table
        while not table.hand.over:
            drawn = len(view(table.hand, 0).cards)
            told = events(table.hand, table.play(1))
            assert [each.key for each in told] == ["event.action", "event.drawn"]
            seen = view(table.hand, 0)
            assert len(seen.cards) == drawn + 1 and told[1].values["card"] == seen.cards[-1]
        seen = view(table.hand, 0)
        assert seen.outcome == {1: "win", 0: "tie", -1: "lose"}[round(table.hand.returns()[0])]
        assert all(english.render(each) for each in result(table.hand)) and seen.other_counts is not None


@pytest.mark.parametrize(("limit", "text"), [(5.0, "5"), (4.5, "4.5")])
def test_when_the_opponent_of_sette_e_mezzo_stops(limit: float, text: str) -> None:
    hand = sit_down("game=sette_mezzo", f"game.limit={limit}").table.hand
    assert Language("en").render(view(hand, 0).rule) == f"it draws until it has {text}"


def test_a_game_without_a_view_of_its_own_is_played_through_the_generic_one() -> None:
    table = Table(Setup(KUHN_POKER.GAME, ("human", "equilibrium"), 3))
    english, legal = Language("en"), set()
    while table.score.games < 20:
        if table.hand.over:
            assert [each.key for each in result(table.hand)] == ["result.seat"] * 2
            table.deal()
        elif table.person_to_move:
            seen = view(table.hand, 0)
            legal.add(seen.legal)
            assert page(english, "kuhn_poker", seen, details=True) == [
                *(f"{row.label}: {row.text}" for row in seen.rows),
                "You may: pass, bet",
            ]
            assert english.render(events(table.hand, table.play(choice(table)))[0]).startswith("Seat 0: ")
        else:
            table.reply()
    assert legal == {("pass", "bet")} and sum(table.score.totals) == 0
