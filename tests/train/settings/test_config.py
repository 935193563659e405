"""Every experiment composes, text stays as typed, and every bad setting gives one line that names its key."""

from pathlib import Path

import pytest

from busso.command.conf_folder import CONF
from busso.command.settings.checks import SettingsError
from busso.command.settings.compose import compose
from busso.command.settings.text import as_typed
from busso.evaluate.compare import CompareSettings
from busso.runs import _overrides
from busso.train.settings.dqn import TrainSettings
from busso.train.settings.resolve import settings_of
from busso.train.settings.run import RunSettings
from tests.errors import error_about
from tests.tiny_game import FILE


def experiments() -> list[str]:
    return sorted(path.stem for path in (CONF / "experiment").glob("*.yaml"))


@pytest.mark.parametrize("experiment", experiments())
def test_every_experiment_composes(experiment: str) -> None:
    assert settings_of([f"experiment={experiment}"]).name == experiment


def test_published_hyperparameters() -> None:
    s = compose(TrainSettings, "train", ["experiment=study_tressette"])
    assert (s.episodes, s.learner.gamma, s.learner.lr, s.learner.batch_size) == (700_000, 0.99, 3e-4, 512)
    assert (s.replay.capacity, s.target.update_interval, s.checkpoint.every_episodes) == (1_000_000, 2_000, 15_000)
    assert (s.exploration.start, s.exploration.end) == (1.0, 0.05)
    assert s.exploration.fraction * 700_000 * 40 == pytest.approx(200_000)
    assert set(s.network.hidden) == {256} and s.game["reward"] == "study"
    phases = [
        (1000, {"study_heuristic": 0.7, "random": 0.3}),
        (600_000, {"study_heuristic": 1.0}),
        (None, {"network": 1.0}),
    ]
    assert [(phase.until, phase.mix) for phase in s.opponents.phases] == phases


@pytest.mark.parametrize("text", ["12e4567", "1.10", "1_000", "007", "-1e-3", ".5", "inf", "true"])
def test_text_that_looks_like_a_number_stays_as_typed(text: str) -> None:
    """On the command line."""
    typed = settings_of([f"runs={text}", f"+network.init_from={text}"])
    assert isinstance(typed, TrainSettings) and (typed.runs, typed.network.init_from) == (text, text)


@pytest.mark.parametrize("text", ["12e4567", "1.10", "true"])
def test_text_that_looks_like_a_number_stays_as_written(text: str, tmp_path: Path) -> None:
    """In lists, in Python and in files."""
    assert compose(CompareSettings, "compare", [f"run=[a, {text} ]"]).run == ["a", text]
    assert settings_of(list(_overrides({"runs": text, "seed": 12}))).runs == text
    for group, lines in (
        ("experiment", f"# @package _global_\nruns: {text}\nseed: 12\n"),
        ("rollout", f"defaults: [ray]\nkind: {text}\n"),
        ("run", f"# @package _global_\nrun: [a, {text}]\n"),
    ):
        (tmp_path / group).mkdir()
        (tmp_path / group / "mine.yaml").write_text(lines)
    folder = f"hydra.searchpath=[{tmp_path}]"
    read = settings_of([folder, "experiment=mine"])
    assert (read.runs, read.seed) == (text, 12)
    (tmp_path / "experiment" / f"{text}.yaml").write_text("# @package _global_\nseed: 13\n")
    assert settings_of([folder, f"experiment={text}"]).seed == 13
    assert compose(CompareSettings, "compare", [folder, "+run=mine"]).run == ["a", text]
    with error_about(SettingsError, "rollout.kind") as caught:
        settings_of([folder, "rollout=mine"])
    assert f"not {text!r}" in str(caught.value)


def test_a_text_option_of_a_game_of_ones_own_stays_as_typed(tmp_path: Path) -> None:
    source = Path(FILE).read_text().replace("options=Options,", "options=Options, put_options=write,")
    source = source.replace("    bet: ", '    label: str = "a"\n    bet: ')
    write = "def write(state, options):\n    state['bet'] = options.bet\n\n\n"
    (tmp_path / "poker.py").write_text(source.replace("GAME = game(", f"{write}GAME = game("))
    settings = settings_of([f"game={tmp_path}/poker.py", "game.label=1.10", "game.bet=5"])
    assert (settings.game["label"], settings.game["bet"]) == ("1.10", 5)


def test_numbers_and_words_beside_text_are_read_by_hydra() -> None:
    settings = settings_of(["learner.threads=2", "learner.lr=1e-4", "network.init_from=null", "minutes=.5"])
    assert isinstance(settings, TrainSettings)
    assert (settings.learner.threads, settings.learner.lr, settings.minutes) == (2, 1e-4, 0.5)
    assert settings.network.init_from is None
    assert as_typed(["game=blackjack", "game.decks=2"])[1] == "game.decks=2"  # an integer or a word
    assert as_typed(["name=choice(7,a,'8')", "name=range(1,3)", "seed=7,8"], RunSettings) == [
        "name=choice('7',a,'8')",
        "name=range(1,3)",
        "seed=7,8",
    ]


# Numbers out of bounds: see test_bounds.py.
BAD = {
    "+foo=1": "foo",
    "learner.lr=fast": "learner.lr",
    "clock=cpu": "clock",  # with rollout=ray
    "clock=sun": "clock",
    "learner.lr_end=1": "learner.lr_end",
    "learner.loss=l1": "learner.loss",
    "learner.threads=many": "learner.threads",
    "game.name=bridge": "game.name",
    "game.reward=money": "game.reward",
    "game.first_leader=me": "game.first_leader",
    "+game.trumps=true": "game.trumps",
    "experiment=nothing": "experiment",
    "evaluation.opponents=[gredy]": "evaluation.opponents",
    "name=..": "name",
    "runs=": "runs",
    "rollout=null": "rollout",
    "network.hidden=256": "network.hidden",
    "evaluation.opponents=[random,random]": "evaluation.opponents",
    "learner..lr=1": "learner..lr",
    "learner=5": "learner",
    f"learner.lr={10**400}": "learner.lr",
    f"opponents.phases=[{{until: {10**30}, mix: {{network: 1.0}}}}]": "opponents.phases.until",
    "opponents.phases=[{until: null, mix: {network: 2.0, random: -1.0}}]": "opponents.phases.mix",
    "opponents.phases=[]": "opponents.phases",
    "opponents.phases=[{until: 5, mix: {network: 1.0}}]": "opponents.phases",
    "opponents.phases=[{until: null, mix: {network: 0.5}}]": "opponents.phases.mix",
    "opponents.phases=[{until: null, mix: {nobody: 1.0}}]": "opponents.phases.mix",
    "learner.lr": "learner.lr",
    "=": "",
}


@pytest.mark.parametrize(("game", "has_champion"), [("tressette", True), ("blackjack", False)])
def test_a_champion_is_listed_where_there_is_one(game: str, has_champion: bool) -> None:
    with error_about(SettingsError, "evaluation.opponents") as caught:
        settings_of([f"game={game}", "algo=dqn", "evaluation.opponents=[nobody]"])
    assert ("champion" in caught.value.hint) == has_champion


@pytest.mark.parametrize("override", BAD)
def test_bad_setting_is_one_line_that_names_it(override: str) -> None:
    with error_about(SettingsError, BAD[override]) as caught:
        compose(TrainSettings, "train", [override])
    assert len(str(caught.value)) < 600  # lists the choices of a group
