"""Choices before a table starts, and their equivalence to a command line."""

from pathlib import Path

import pytest

from busso.cards import player_specs
from busso.command.conf_folder import own_games
from busso.command.settings.checks import SettingsError
from busso.command.settings.compose import compose
from busso.play.language import texts_of
from busso.play.table.choices import APART, Choices, offered_players
from busso.play.table.settings import PlaySettings, seats_of
from tests.errors import error_about

GAMES = own_games()


def chosen(name: str, *given: str) -> Choices:
    """Return the choices of a game after these, as `key=value`."""
    choices = Choices(name)
    for key, _, value in (each.partition("=") for each in given):
        choices.choose(key, value)
    return choices


def settings_of(choices: Choices) -> PlaySettings:
    return compose(PlaySettings, "play", choices.overrides())


@pytest.mark.parametrize("name", GAMES)
def test_nothing_chosen_is_the_default_of_the_command_line(name: str) -> None:
    choices = Choices(name)
    assert choices.overrides() == [f"game={name}"]
    settings = settings_of(choices)
    for key, value in settings.game.items():
        if key not in ("name", "reward"):
            assert choices.row(f"game.{key}").value == (
                "null" if value is None else str(value).replace("False", "false")
            )


@pytest.mark.parametrize("name", GAMES)
def test_whatever_is_offered_can_be_chosen(name: str) -> None:
    for row in Choices(name).rows():
        assert row.offered and (row.value in row.offered)
        for value in row.offered:
            choices = chosen(name, f"{row.key}={value}")
            assert choices.row(row.key).value == value
        if row.key.startswith("game."):  # the last one only, as composing is slow
            written = settings_of(choices).game[row.key.removeprefix("game.")]
            assert str(written).lower() == value


def test_partner_and_opponents_apart() -> None:
    apart = ("partner=monte_carlo:samples:20:ms:5", f"opponents={APART}", "seat.1=human")
    choices = chosen("tressette", *apart, "match=21", "seed=7")
    settings = settings_of(choices)
    assert seats_of(settings, choices.game) == ("human", "human", "monte_carlo:samples:20:ms:5", "greedy")
    assert (settings.match, settings.seed) == (21, 7)
    choices.choose("seat", "3")
    assert [row.key for row in choices.rows() if row.key.startswith("seat.")] == ["seat.0", "seat.2"]
    choices.choose("opponents", "study_heuristic")
    assert seats_of(settings_of(choices), choices.game)[0] == "study_heuristic"


def test_fewer_seats_take_away_what_was_chosen_for_them() -> None:
    choices = chosen("spike", "game.seats=4", "seat=3", f"opponents={APART}", "seat.2=initial")
    assert settings_of(choices).opponents == ["cautious", "cautious", "initial"]
    choices.choose("game.seats", "2")
    assert choices.row("seat").value == "0"
    assert [row.key for row in choices.rows()][:3] == ["opponents", "seat", "game.seats"]
    assert seats_of(settings_of(choices), choices.game)[0] == "human"


@pytest.mark.parametrize(
    ("key", "text", "named"),
    [
        ("game.credits", "3", "game.credits"),
        ("game.credits", "[", "game.credits"),
        ("game.credits", " ", "credits"),
        ("game.min_seats", "5", "game.min_seats"),
        ("seed", "-1", "seed"),
        ("seed", "²", "seed"),
        ("opponents", "", "opponents"),
    ],
)
def test_what_cannot_be_is_one_line_and_changes_nothing(key: str, text: str, named: str) -> None:
    choices = Choices("spike")
    with error_about(SettingsError, named):
        choices.choose(key, text)
    assert choices.overrides() == ["game=spike"] and choices.rows() == Choices("spike").rows()


def test_players_that_are_offered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(player_specs, "champion_folder", lambda game: tmp_path / "shipped" / game)
    game = Choices("tressette").game
    rule_players = [name for name in offered_players(game, tmp_path) if name in ("random", *game.policies)]
    assert rule_players == [*game.policies, "random"]
    for name in ("default", "champion"):
        (tmp_path / "tressette" / name / "checkpoints").mkdir(parents=True)
    (tmp_path / "tressette" / "empty").mkdir()
    (tmp_path / "spike" / "table" / "policies").mkdir(parents=True)
    (tmp_path / "spike" / "table" / "policies" / "iteration_005.npz").touch()
    (tmp_path / "spike" / "net" / "checkpoints").mkdir(parents=True)
    champion, default = f"{tmp_path}/tressette/champion", f"{tmp_path}/tressette/default"
    offered = offered_players(game, tmp_path)
    assert offered[:2] == (champion, "greedy") and "cheating" in offered
    searches = [f"{kind}:{run}" for kind in ("search", "cheating_search") for run in (champion, default)]
    assert sorted(offered[-5:-1]) == sorted(searches) and offered[-6] == default and offered[-1] == "human"
    spike = offered_players(Choices("spike").game, tmp_path)
    net, table = f"{tmp_path}/spike/net", f"{tmp_path}/spike/table"
    assert spike[0] == "cautious" and spike[-4:] == (net, table, f"search:{net}", "human")


def test_every_row_has_its_texts_and_no_text_is_without_a_row() -> None:
    rows = [row for name in GAMES for row in Choices(name).rows()]
    names = {row.key.removeprefix("game.") for row in rows}

    def said(part: str) -> set[str]:
        return {key.split(".")[2] for key in texts_of("en") if key.startswith(f"menu.{part}.")}

    assert said("row") == said("says") == names | {"seat_of"}
    assert said("value") <= {value for row in rows for value in row.offered}
    assert said("empty") == {row.key.removeprefix("game.") for row in rows if {"", "null"} & set(row.offered)}
