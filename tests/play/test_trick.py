"""Tressette table as laid out for a seat, without a screen."""

from dataclasses import replace

from busso.play.language import Language, message
from busso.play.views import position, view
from busso.play.views.tressette import TressetteView, cards_of, facts, task, trick_of
from tests.play.people import choice, reply, sit_down

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
