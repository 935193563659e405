"""Views: their content, and no hidden information."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from busso.base.own_files import trust
from busso.cards.compiled.splitmix import stream
from busso.cards.game import Game, States, load_game
from busso.cards.hand import Hand, Move
from busso.cards.own.files import game_with
from busso.play.language import Language, message
from busso.play.table.session import Session
from busso.play.table.table import Setup, Table
from busso.play.views import events, page, position, result, view
from busso.play.views.spike import costs, endings, showdown, sums_after
from busso.play.views.tressette import TressetteView, cards_of, dealt, facts, task, trick_of
from busso.spike.cards import BUY, FOLD, MATCH, NO_BUY, VALUES
from tests.blackjack.hidden import reshuffle_hidden as hidden_in_blackjack
from tests.play.people import choice, play_on, reply, sit_down, step
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


EMPTY = TressetteView(
    seat=1,
    turn=1,
    leader=0,
    hand=(("3D", "4D"), (), ("AS",), ()),
    legal=("AS",),
    trick=((0, "2S"),),
    tricks=(1, 2),
    thirds=(0, 0),
    points=(0, 0),
    last_trick=((2, "4C"), (3, "5C"), (0, "2C"), (1, "7B")),
    last_taker=0,
    signals=(),
    voids=((), (), ("C",), ("D", "S")),
    accusi=((), (), (), ()),
    cards_left=(6, 7, 7, 7),
)


def test_places_go_round_from_the_viewer() -> None:
    trick = trick_of(EMPTY)
    assert [(place.seat, place.card) for place in trick.places] == [(1, None), (2, None), (3, None), (0, "2S")]
    assert [place.leads for place in trick.places] == [False, False, False, True] and trick.places[3].highest
    assert trick.number == 4 and not trick.complete


def test_a_complete_trick_lies_there_until_the_next_is_led() -> None:
    led, before = trick_of(EMPTY, last=True), trick_of(replace(EMPTY, trick=(), leader=0, turn=0))
    assert led == before and led.complete and led.number == 3
    assert [(place.seat, place.card, place.leads, place.highest) for place in led.places] == [
        (1, "7B", False, False),
        (2, "4C", True, False),
        (3, "5C", False, False),
        (0, "2C", False, True),
    ]
    first = replace(EMPTY, trick=(), last_trick=(), tricks=(0, 0))
    assert trick_of(first, last=True).number == 1 and not trick_of(first, last=True).complete


def test_what_one_may_do() -> None:
    assert task(EMPTY) == message("tressette_screen.follow", suit="spade")
    assert task(replace(EMPTY, trick=((0, "2B"),))) == message("tressette_screen.free", suit="bastoni")
    assert task(replace(EMPTY, trick=())) == message("tressette_screen.lead")
    assert cards_of(EMPTY) == ["3D", "4D", "AS"]


def test_what_is_known_of_a_seat() -> None:
    said = ((2, "D", "volo"), (2, "S", "busso"), (2, "B", "busso"), (2, "C", "busso"), (3, "B", "striscio"))
    declared = (message("accuso.three", rank="A", suit="denari"), message("accuso.four", rank="3"))
    told = replace(EMPTY, signals=said, accusi=((), (), declared, ()))
    language = Language("en")
    # Declarations about a suit that has been played out are dropped.
    assert list(map(language.render, facts(told, 2))) == ["no C", "volo D", "busso S B", "3 × A, no D", "4 × 3"]
    assert list(map(language.render, facts(told, 3))) == ["no D S", "striscio B"]
    assert facts(told, 0) == []
    assert facts(replace(told, cards_left=(0, 0, 0, 0)), 3) == [
        message("tressette_screen.said", suits="B", signal="striscio")
    ]


def test_a_position_is_what_the_seat_saw_with_all_hands_open() -> None:
    session = sit_down("seed=7")
    table, before = session.table, {}
    while not reply(table).hand.over:
        before[len(table.hand.moves) + 1] = view(table.hand, 0), table.hand.state.copy()
        table.play(choice(table))
    language = Language("en")
    for number, (seen, state) in before.items():
        then = table.hand.until(number - 1)
        assert view(then, 0) == seen and (then.state == state).all() and len(table.hand.moves) == 40
        lines = position(language, table.hand, number, 0)
        opened = lines[lines.index(language.say("review_screen.open")) + 1 :][:4]
        held = [card for suit in seen.hand for card in suit]
        assert [card for card in opened[0].split()[1:] if "(" not in card] == held
        assert sum(line.count("(") for line in opened) == number - 1
        assert all(f"({card})" in " ".join(opened) for _, card in seen.trick)


def test_endings_are_what_the_credits_say() -> None:
    """By showdown, by folding, and with a second pot."""
    table, found = sit_down("game=spike", "hands=9", "seed=5", "sabacc_pot=true").table, []
    while not table.hand.over:
        seen, prices = view(table.hand, 0), costs(table.hand)
        if table.person_to_move:
            folds = FOLD in table.hand.legal and len(table.hand.moves) % 7 == 6
            table.play(FOLD if folds else MATCH if MATCH in table.hand.legal else NO_BUY)
        else:
            table.reply()
        move = table.hand.moves[-1]
        for end in endings(table.hand, move):
            shows = [each for each in events(table.hand, move) if each.key == "event.shows"]
            assert [each.values["seat"] for each in shows] == [k for k, seat in enumerate(end.seats) if seat.cards]
            for each in shows:
                assert sum(end.seats[int(each.values["seat"])].cards) == int(each.values["sum"])
            assert (end.rule is None) == (not shows) and (not shows or len(end.dice) == 3)
            both = bool(shows) and sum(end.seats[end.winner].cards) == 0
            assert end.won == seen.pool + prices.get(move.action, 0) + (seen.second_pot if both else 0)
            assert sum(seat.credits for seat in end.seats) == 100 - (0 if both else seen.second_pot)
            found.append(end)
    assert {end.rule is None for end in found} == {True, False}
    assert [end.number for end in found] == list(range(1, int(table.hand.state[0]["hands_played"]) + 1))
    assert [seat.credits for seat in found[-1].seats] == [seat.credits for seat in view(table.hand, 0).seats]


def test_what_an_action_costs_is_what_it_takes() -> None:
    table, seen = sit_down("game=spike", "seats=3", "credits=8", "seed=6").table, 0
    while not table.hand.over:
        prices, before = costs(table.hand), table.hand.state[0]["credits"].copy()
        for action, price in prices.items():
            other = Hand(table.game, table.hand.seeds, table.hand.state)
            seat = other.play(action).seat
            if other.state[0]["hands_played"] == table.hand.state[0]["hands_played"]:
                assert int(before[seat]) - int(other.state[0]["credits"][seat]) == price
                seen |= 1 << action
        step(table)
    assert seen >> MATCH & 1 and seen >> BUY & 1 and not seen >> FOLD & 1


def test_sums_after_are_the_sums_after() -> None:
    table, seen = sit_down("game=spike", "seed=6").table, set()
    while not table.hand.over:
        if table.turn == 0:
            sums = sums_after(view(table.hand, 0))
            for action, total in sums.items():
                other = Hand(table.game, table.hand.seeds, table.hand.state)
                other.play(action)
                assert view(other, 0).sum == total
                seen.add(action)
            assert bool(sums) == (BUY not in table.hand.legal and MATCH not in table.hand.legal)
        table.play(BUY) if table.person_to_move and BUY in table.hand.legal else step(table)
    assert len(seen) == 4
