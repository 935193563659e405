"""Initial training settings of a game in a file."""

from dataclasses import asdict
from pathlib import Path

import pytest

from busso.command.settings.checks import SettingsError
from busso.train.settings.resolve import settings_of
from tests.own.examples import TRICKS, WAR

VARIANT = Path(TRICKS).read_text()


def chosen(tmp_path: Path, text: str, *overrides: str, name: str = "mine") -> dict[str, object]:
    file = tmp_path / f"{name}.py"
    file.write_text(text)
    return asdict(settings_of([f"game={file}", *overrides]))


def test_a_variant_has_the_recipe_of_its_game() -> None:
    found, shipped = asdict(settings_of([f"game={TRICKS}"])), asdict(settings_of(["game=tressette"]))
    assert found["game"] | {"name": "tressette", "reward": shipped["game"]["reward"]} == shipped["game"]
    assert found["game"]["reward"] == "tricks" and found | {"game": None} == shipped | {"game": None}


def test_its_own_recipe_comes_first(tmp_path: Path) -> None:
    recipe = "RECIPE = {'network': {'hidden': [8]}, 'target': {'td_lambda': 0.9}, 'evaluation': {'deals': 64}}\n"
    found = chosen(tmp_path, VARIANT.replace("rewards={", "policies=[], rewards={") + recipe)
    assert found["network"]["hidden"] == [8] and found["network"]["symmetric"]  # type: ignore[index]
    assert found["target"] == {"kind": "lambda_returns", "td_lambda": 0.9}
    evaluation = found["evaluation"]
    assert evaluation["opponents"] == ["random"] and evaluation["deals"] == 64  # type: ignore[index]


NESTED = """
from busso.kit import njit, variant
from busso.{game} import GAME as SHIPPED

@njit
def r(before, action, after, totals):
    pass

GAME = {made}
"""


@pytest.mark.parametrize(
    ("game", "made"),
    [
        ("spike", "variant(SHIPPED, policies={})"),  # its recipe plays against rule players
        ("tressette", "variant(SHIPPED, kinds={})"),
        ("tressette", "variant(variant(SHIPPED, rewards={'r': r}), policies={})"),
        ("tressette", "variant(variant(SHIPPED, policies={}), rewards={'r': r})"),
    ],
)
def test_no_recipe_names_what_a_variant_has_replaced(game: str, made: str, tmp_path: Path) -> None:
    found = chosen(tmp_path, NESTED.format(game=game, made=made))
    assert found["evaluation"]["opponents"] == ["random"]  # type: ignore[index]
    assert [list(phase["mix"]) for phase in found["opponents"]["phases"]] == [["network"]]  # type: ignore[index]
    assert (found["game"]["reward"] == "r") == ("rewards" in made)  # type: ignore[index]


@pytest.mark.parametrize("target", ["lambda_returns", "target_network"])
def test_a_target_of_its_recipe(target: str, tmp_path: Path) -> None:
    """Of a game that is not a variant; typed settings take precedence."""
    text = f"{Path(WAR).read_text()}\nRECIPE = {{'target': {{'kind': '{target}'}}}}\n"
    assert chosen(tmp_path, text)["target"]["kind"] == target  # type: ignore[index]
    typed = chosen(tmp_path, text, "target=lambda_returns")
    assert typed["target"]["kind"] == "lambda_returns"  # type: ignore[index]


def test_without_a_recipe_the_learner_bootstraps() -> None:
    assert asdict(settings_of([f"game={WAR}"]))["target"]["kind"] == "target_network"


def test_an_unknown_target(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"RECIPE: target\.kind"):
        chosen(tmp_path, f"{Path(WAR).read_text()}\nRECIPE = {{'target': {{'kind': 'montecarlo'}}}}\n")


def test_a_variant_with_one_more_player_keeps_the_opponents(tmp_path: Path) -> None:
    made = "variant(SHIPPED, policies={**SHIPPED.policies, 'mine': SHIPPED.policies['greedy']})"
    found = chosen(tmp_path, NESTED.format(game="tressette", made=made))
    assert found["evaluation"]["opponents"] == ["random", "greedy", "monte_carlo:samples:10"]  # type: ignore[index]
