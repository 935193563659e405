import pytest

from busso.command.settings.checks import SettingsError
from busso.command.settings.compose import compose
from busso.command.settings.mistakes import nearest
from busso.evaluate.solve.__main__ import SolveSettings
from busso.train.settings.resolve import settings_of
from tests.errors import error_about

KNOWN = (
    "game",
    "seed",
    "learner",
    "learner.lr",
    "learner.lr_end",
    "evaluation.deals",
    "exploration.end",
)


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("learner.lrr", "learner.lr"),
        ("lr", "learner.lr"),
        ("explore.end", "exploration.end"),
        ("lerner", "learner"),
        ("gaem", "game"),
        ("learning", None),
        ("foo", None),
        ("", None),
    ],
)
def test_the_nearest_key(typed: str, meant: str | None) -> None:
    assert nearest(typed, KNOWN) == meant


@pytest.mark.parametrize(
    ("typed", "key", "meant"),
    [
        (["learner.lrr=1"], "learner.lrr", "learner.lr"),
        (["+learner.lrr=1", "seed=3"], "learner.lrr", "learner.lr"),
        (["gaem=spike"], "gaem", "game"),
        (["exeriment=hour"], "exeriment", "experiment"),
        (["game=spike", "game.sets=3"], "game.sets", "game.seats"),
        (["algo=td", "game=blackjack", "stepsize=1"], "stepsize", "step_size"),
    ],
)
def test_a_mistyped_key_is_refused_with_the_nearest(typed: list[str], key: str, meant: str) -> None:
    with error_about(SettingsError, key, "unknown setting", f"did you mean {meant}?"):
        settings_of(typed)


def test_it_is_a_key_of_this_command_and_of_these_choices() -> None:
    with error_about(SettingsError, "plaier", "unknown setting", "did you mean player?"):
        compose(SolveSettings, "solve", ["plaier=2"])
    with error_about(SettingsError, "game.sets", "unknown setting with these choices", "--cfg job"):
        settings_of(["game=tressette", "game.sets=3"])


def test_a_mistyped_choice_is_refused_with_all_and_the_nearest() -> None:
    with error_about(SettingsError, "game", "'spiek'", "did you mean spike? Available: blackjack, sette_mezzo, spike"):
        settings_of(["game=spiek"])
    with error_about(SettingsError, "experiment", "'nothing'", "available: best_response,") as caught:
        settings_of(["experiment=nothing"])
    assert caught.value.hint.endswith(", study_tressette")
