"""Text of Corellian Spike beyond its view: endings, prices, sums, log."""

from busso.cards.hand import Hand
from busso.play.views import events, view
from busso.play.views.spike import costs, endings, sums_after
from busso.spike.cards import BUY, FOLD, MATCH, NO_BUY
from tests.play.people import sit_down, step


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
