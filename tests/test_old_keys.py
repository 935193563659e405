"""Settings of earlier versions: refused on a command line with what to write instead, mapped in what was saved."""

import re
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
import yaml

import busso
from busso.cards.player_specs import champion_file as shipped_champion
from busso.command.commands import REPLACED
from busso.command.settings.checks import SettingsError
from busso.command.settings.compose import compose
from busso.command.settings.old_keys import CHOICES, GONE, KEYS, upgraded
from busso.evaluate.solve.__main__ import SolveSettings
from busso.play.table.settings import PlaySettings
from busso.train.__main__ import main
from busso.train.dqn.players import champion_file
from busso.train.run.checkpoint import checkpoint
from busso.train.settings.dqn import TrainSettings
from tests.errors import error_about
from tests.pages import MIGRATION, ROOT
from tests.train.runs import TARGET_NETWORK, settings, small
from tests.train.tune.searches import search


def as_of_0_2_0(values: dict[str, Any]) -> dict[str, Any]:
    """Settings of today under their old names; phases knew no `each`."""
    for phase in values["opponents"]["phases"]:
        del phase["each"]
    for old, new in KEYS.items():
        group, _, name = new.rpartition(".")
        value = values[group].pop(name)
        into, _, name = old.rpartition(".")
        (values[into] if into else values)[name] = value
    del values["opponents"]
    return values


@pytest.mark.parametrize(("old", "new"), [*((f"{key}=1", f"{KEYS[key]}=1") for key in KEYS), *CHOICES.items()])
def test_an_old_name_is_refused_with_the_new_one(old: str, new: str) -> None:
    with error_about(SettingsError, old.partition("=")[0], new.removesuffix("=1").removeprefix("experiment=")):
        compose(TrainSettings, "train", [old])


@pytest.mark.parametrize("old", GONE)
def test_what_is_gone_is_refused_with_what_to_say_instead(old: str) -> None:
    given = old if "=" in old else f"{old}=2"
    with error_about(SettingsError, old.partition("=")[0], "no longer exists", GONE[old]):
        compose(TrainSettings, "train", [given])
    compose(TrainSettings, "train", re.findall(r"[a-z._/]+=[a-z0-9.]+(?![a-z0-9.(])", GONE[old]))


@pytest.mark.parametrize("key", [next(iter(KEYS)), next(key for key in GONE if "=" not in key)])
def test_a_deleted_or_searched_key_is_refused_too(key: str) -> None:
    with error_about(SettingsError, key, KEYS.get(key, ""), GONE.get(key, "")):
        compose(TrainSettings, "train", [f"~{key}"])
    with error_about(SettingsError, key, KEYS.get(key, ""), GONE.get(key, "")):
        search([f"{key}=1,2"])


def test_the_pages_on_the_way_from_earlier_versions_have_each_old_name() -> None:
    page, newer = ((ROOT / "docs" / name).read_text() for name in MIGRATION)
    settings_section, commands_section = re.findall(r"^## (?:Settings|Commands)\n(.*?)(?=^## )", page, re.M | re.S)
    assert dict(re.findall(r"^\| `(\S+)` \| `(\S+)` \|$", settings_section, re.M)) == KEYS | CHOICES
    assert set(re.findall(r"^\| `busso (\S+)`", commands_section + newer, re.M)) == set(REPLACED)
    assert set(GONE) <= set(re.findall(r"`(\S+)`", newer))


def test_the_key_of_another_command_is_not_an_old_one() -> None:
    assert compose(SolveSettings, "solve", ["player=2", "opponent=6"]).opponent == 6
    with error_about(SettingsError, "opponent", "no such setting"):
        compose(PlaySettings, "play", ["game=tressette", "opponent=greedy"])


def test_saved_settings_get_the_names_of_today(tmp_path: Path) -> None:
    given = (*TARGET_NETWORK, "rollout.torch_threads=2", "learner.watkins_cut=true")
    values = asdict(settings(tmp_path, *given))
    assert upgraded(as_of_0_2_0(asdict(settings(tmp_path, *given)))) == values
    assert upgraded(values) == values
    assert upgraded({"algo": "td", "step_size": 1.0}) == {"algo": "td", "step_size": 1.0}
    assert upgraded({"opponent": None, "opponents": 3, "rollout": [1]}) == {"opponents": 3, "rollout": [1]}
    saved = {"opponents": {"phases": [{"until": None, "mix": {"network": 0.5, "league": 0.25, "random": 0.25}}]}}
    phases = [{"each": "seat", "until": None, "mix": {"network": 0.75, "random": 0.25}}]
    assert upgraded(saved) == {"opponents": {"phases": phases}}
    assert upgraded(["opponent"]) == ["opponent"]
    old = {"rollout": {"kind": "threads", "games": None}, "learner": {"precision": "float16", "lr": 1.0}}
    assert upgraded(old) == {"rollout": {"kind": "ray", "games": 512}, "learner": {"precision": "auto", "lr": 1.0}}


def test_a_run_of_0_2_0_is_read_played_and_resumed(tmp_path: Path) -> None:
    """A changed setting under another name is still a change."""
    given = ["learner.watkins_cut=true", "evaluation.best_metric=result"]
    assert main(small(tmp_path, *given, "episodes=96")) == 0
    folder = tmp_path / "tressette" / "small"
    (newest, *_) = checkpoint.listed(folder / "checkpoints")
    state = checkpoint.load(newest)
    as_of_0_2_0(state["settings"])
    checkpoint.save(newest, state)
    config = folder / "config.yaml"
    config.write_text(yaml.safe_dump(as_of_0_2_0(yaml.safe_load(config.read_text()))))

    run = busso.load_run(folder)
    assert run.settings.learner.watkins_cut is True
    busso.load_player(busso.load_game("tressette"), run)
    assert main(small(tmp_path, "learner.watkins_cut=false", given[1], "episodes=160")) == 2
    assert main(small(tmp_path, *given, "episodes=160")) == 0
    (newest, *_) = checkpoint.listed(newest.parent)
    state = checkpoint.load(newest)
    assert state["counters"]["episodes"] == 160 and state["settings"]["opponents"]["phases"]


def test_a_champion_of_0_2_0_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = shipped_champion(busso.load_game("spike"))
    assert path is not None
    shipped = champion_file.read(path)  # its settings have network.start
    assert shipped.settings.network.inputs == 623
    old = {"game": shipped.settings.game, "network": asdict(shipped.settings.network)}
    old["network"]["start"] = old["network"].pop("init_from")
    monkeypatch.setattr(champion_file, "shaping", lambda settings: old)
    champion_file.write(tmp_path / "old.safetensors", shipped.settings, shipped.networks, shipped.about)
    assert champion_file.read(tmp_path / "old.safetensors").settings == shipped.settings
