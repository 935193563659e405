"""Watched games: agents and files, forwards and backwards, without a screen."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from busso.cards.game import load_game
from busso.command.settings.checks import SettingsError
from busso.command.settings.game import load_configured_game
from busso.evaluate.review.advisers import ActionValue
from busso.play.language import Language
from busso.play.spectate import Agents, RecordError, WatchedGames, bars, open_watch, read_hands
from busso.play.table.settings import watched_seats
from busso.play.table.table import Setup, Table
from busso.play.views import events, result, view
from busso.train.network.q_network import DenseNetwork, NetworkPlayer
from tests.errors import error_about
from tests.play.people import choice, composed, sit_down

ENGLISH = Language("en")
GAMES = {
    "tressette": ("accusi=true",),
    "match": ("match=11",),
    "spike": ("game=spike", "seats=3", "hands=3", "sabacc_pot=true"),
    "blackjack": ("game=blackjack", "decks=1"),
    "sette e mezzo": ("game=sette_mezzo", "limit=4"),
}


def looked_at(*overrides: str) -> WatchedGames:
    """Open the games that `busso play watch=...` would show."""
    return open_watch(*composed(*overrides))


def played_out(watch: WatchedGames) -> None:
    while not watch.table.hand.over:
        watch.think()
        at = watch.at
        watch.step()
        assert watch.at == at + 1
    watch.step()  # there is no further move
    assert watch.at == len(watch.table.hand.moves)


def recorded(path: Path, *overrides: str, games: int = 3) -> list[list[str]]:
    """Play games by `choice` into a file; return the messages and result of each hand."""
    session = sit_down(*overrides, f"record={path}", "seed=5")
    said: list[list[str]] = [[]]
    while True:
        table = session.table
        if table.hand.over:
            said[-1] += [ENGLISH.render(told) for told in result(table.hand)]
            if table.game_over and table.score.games == games:
                return said
            said.append([])
            session.deal()
        else:
            move = session.play(choice(table)) if table.person_to_move else session.reply()
            said[-1] += [ENGLISH.render(told) for told in events(table.hand, move)]


@pytest.mark.parametrize("name", GAMES)
def test_agents_play_as_at_a_table_of_players(name: str) -> None:
    watch = looked_at("watch=agents", "seed=7", *GAMES[name])
    game, match = watch.game, watch.table.setup.match
    table = Table(Setup(game, watch.table.setup.seats, 7, match))
    for number in range(3):
        while not table.hand.over:
            table.reply()
        assert (watch.number, watch.at, watch.table.hand.actions) == (number, 0, [])
        played_out(watch)
        assert watch.table.hand.actions == table.hand.actions and watch.table.match_score == table.match_score
        table.deal()
        assert watch.find(number + 1)
        watch.go(number + 1)


def test_the_way_back_is_the_way_forth() -> None:
    watch = looked_at("watch=agents", "seed=7", "opponents=random", "partner=greedy")
    assert watch.table.setup.seats == ("greedy", "random", "greedy", "random")
    watch.back()  # there is no earlier move
    assert watch.at == 0 and watch.following is None
    seen = [view(watch.table.hand, 0)]
    for _ in range(9):
        watch.think()
        watch.step()
        seen.append(view(watch.table.hand, 0))
    for k in range(8, -1, -1):
        watch.back()
        assert view(watch.table.hand, 0) == seen[k] and watch.following is not None
    for k in range(1, 10):
        watch.think()  # a position is evaluated only once
        watch.step()
        assert view(watch.table.hand, 0) == seen[k]


@pytest.mark.parametrize("name", GAMES)
def test_a_record_is_shown_as_it_was_played(name: str, tmp_path: Path) -> None:
    path = tmp_path / "games.jsonl"
    options = [option for option in GAMES[name] if not option.startswith("hands=")]
    said = recorded(path, *options, *(["hands=1"] if name == "spike" else []))
    hands = read_hands(path)
    told = [
        [ENGLISH.render(message) for move in each.hand.moves for message in events(each.hand, move)]
        + [ENGLISH.render(message) for message in result(each.hand)]
        for each in hands
    ]
    assert told == said
    records = [json.loads(line) for line in path.read_text().splitlines()]
    assert [each.hand.record() for each in hands] == [
        {key: value for key, value in record.items() if key not in ("match", "to", "hand", "score")}
        for record in records
    ]


def test_hands_of_one_spike_record_come_one_by_one(tmp_path: Path) -> None:
    path = tmp_path / "games.jsonl"
    recorded(path, "game=spike", "hands=3", games=1)
    found = read_hands(path)
    assert [(each.line, each.part) for each in found] == [(1, k + 1) for k in range(len(found))] and len(found) > 1
    assert all(each.parts == len(found) and each.hand.over for each in found)


def test_a_bad_record_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / "games.jsonl"
    recorded(path, "game=sette_mezzo", games=2)
    good = path.read_text()
    for bad, why in (
        ("{", "not JSON"),
        ('{"game":"go"}', "unknown game 'go'"),
        (good.splitlines()[0].replace('"limit":5.0', '"limit":9'), "limit"),
    ):
        path.write_text(f"{good}\n{bad}\n")
        with error_about(RecordError, "watch", f"{path}, line 4: ") as caught:
            looked_at(f"watch={path}")
        assert why in caught.value.problem
    path.write_text("\n")
    with error_about(RecordError, "watch", str(path), hint="record=FILE"):
        looked_at(f"watch={path}")
    with pytest.raises(OSError, match="games"):
        looked_at(f"watch={tmp_path}/no games")


REFUSED = {
    "watch=agents save=x": "save",
    "watch=agents record=x": "record",
    "watch=agents opponents=human": "watch",
    "watch=agents opponents=nobody": "opponents",
    "watch=agents game=spike match=11": "match",
    "watch=x.jsonl opponents=greedy": "opponents",
    "watch=x.jsonl accusi=true": "game.accusi",
}


@pytest.mark.parametrize("overrides", REFUSED)
def test_what_cannot_be_looked_on_at(overrides: str) -> None:
    with error_about(SettingsError, REFUSED[overrides]):
        looked_at(*overrides.split())


def test_who_sits_where() -> None:
    def seats(*overrides: str) -> tuple[str, ...]:
        settings, _ = composed(*overrides)
        return watched_seats(settings, load_configured_game(settings.game))

    assert seats() == ("greedy",) * 4
    assert seats("opponents=[random,greedy]", "seat=1") == ("random", "random", "greedy", "random")
    assert seats("game=spike", "seats=3", "partner=random", "seat=2") == ("cautious", "cautious", "random")
    assert seats("game=blackjack", "opponents=random") == ("random",)


def test_values_come_from_who_plays_else_from_the_coach() -> None:
    own = looked_at("watch=agents", "seed=7", "opponents=monte_carlo:samples:30", "hint=monte_carlo:samples:10")
    other = looked_at("watch=agents", "seed=7", "opponents=greedy", "hint=monte_carlo:samples:10")
    (unit, worths), (_, others) = own.worths(), other.worths()
    assert unit == "points" and {each.action for each in worths} == set(own.table.hand.legal)
    assert worths != others and others == other.coach.hint(other.table.hand)
    assert own.worths() == (unit, worths)
    played_out(other)
    assert other.worths() == ("", [])


def test_values_of_a_network_are_its_own() -> None:
    game = load_game("tressette")
    torch.manual_seed(1)
    player = NetworkPlayer(DenseNetwork(game.bits, game.actions, [8], dueling=False))
    table = Table(Setup(game, ("net",) * 4, 7), lambda game, spec: player)
    coach = looked_at("watch=agents").coach
    player.begin(np.zeros(1, np.uint64))
    unit, worths = WatchedGames(Agents(table, coach), coach).worths()
    assert unit == "network" and worths[0].action == int(player.act(table.hand.decisions())[0])
    assert {each.action for each in worths} == set(table.hand.legal)


def test_the_next_game_of_a_file_has_its_own_coach_and_seats(tmp_path: Path) -> None:
    path = tmp_path / "games.jsonl"
    recorded(path, "game=spike", "seats=4", "hands=1", games=1)
    recorded(path, "game=sette_mezzo", games=1)
    watch = looked_at(f"watch={path}", "seat=3")
    assert watch.viewer == 3
    assert watch.find(1)
    watch.go(1)
    assert (watch.game.name, watch.viewer, watch.coach.name) == ("sette_mezzo", 0, "exact")
    hand = watch.table.hand
    assert {each.action for each in watch.coach.hint(hand)} == set(hand.legal)


def test_bars() -> None:
    worths = [ActionValue(0, 2.0), ActionValue(2, 1.0), ActionValue(1, 0.0), ActionValue(3, None)]
    lines = bars(worths, "points", "abcd".__getitem__, 2, 78)
    (line,) = lines
    cells = [cell for cell in line.split("  ") if cell.strip()]
    assert "a 2.00 █" in cells[0] and "▸c 1.00 █" in line and "b 0.00 ▏" in line and "d    ?" in line
    assert max(map(len, bars(worths, "points", lambda action: "x" * 60, None, 78))) <= 78
    assert len(bars(worths, "points", lambda action: "x" * 60, None, 78)) == 4
    full = bars([ActionValue(0, 1.0), ActionValue(1, 1.0)], "result", "ab".__getitem__, None, 78)[0]
    assert full.count("█") == 2 * 24 and "+1.000" in full
