"""Reference pages match the code: every curve, the files of a run, and a uniform page for each game."""

import fnmatch
import importlib
import re
from collections.abc import Iterator
from dataclasses import fields
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
import torch
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from busso.cards.compiled.bits import unpack
from busso.cards.game import Game, load_game
from busso.command.conf_folder import own_games
from busso.command.settings.compose import settings_from_dict
from busso.train.network.build import build_network
from busso.train.run.folder import CAPACITY, CHANGEABLE, CHANGEABLE_GROUPS
from busso.train.settings.dqn import TrainSettings
from busso.train.tabular import batch_q
from busso.train.tabular import trainer as table_trainer
from tests.pages import ROOT
from tests.train.runs import TrainedRuns

REFERENCE = ROOT / "docs" / "reference"
RUN_FILES = (REFERENCE / "run_files.md").read_text(encoding="utf-8")
CURVES = (REFERENCE / "curves.md").read_text(encoding="utf-8")
FORM = ["Rules", "Actions", "Observation", "Rewards", "Options", "Players", "Version"]


def section(text: str, title: str) -> str:
    found = text.partition(f"\n## {title}\n")[2].partition("\n## ")[0]
    assert found, title
    return found


def rows(text: str) -> Iterator[list[str]]:
    """Yield the cells of the tables, without headers."""
    lines = text.splitlines()
    for line, following in zip(lines, [*lines[1:], ""], strict=True):
        if line.startswith("| ") and not following.startswith("|--"):
            yield [cell.replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", line[1:-1])]


def named(text: str) -> set[str]:
    """Return the names in the first cells of the tables."""
    return {name for row in rows(text) for name in re.findall(r"`([^`]+)`", row[0])}


@pytest.fixture(scope="module")
def run(trained_run: TrainedRuns) -> Path:
    """Train a run with all curves that a network can have."""
    return trained_run()


def test_every_curve_of_a_network_is_on_the_page(run: Path) -> None:
    with (run / "metrics.csv").open() as file:
        found = set(file.readline().strip().split(",")) - {"env_steps"}
    tags = EventAccumulator(str(run / "tensorboard")).Reload().Tags()
    found |= {*tags["scalars"], *tags["histograms"]}
    general = {re.sub("^final/.*", "final/CURVE", re.sub("_vs_.*", "_vs_OPPONENT", name)) for name in found}
    general = {re.sub("norm_of_.*", "norm_of_LAYER", name) for name in general}
    titles = ("Evaluations", "Games", "Learning", "Speed", "TensorBoard only")
    assert named("".join(section(CURVES, title) for title in titles)) == general


@pytest.mark.parametrize(
    ("title", "scalars"),
    [
        ("Tables: Q-learning, Monte Carlo, TD", table_trainer.SCALARS),
        ("Tables: batch Q-learning", batch_q.SCALARS),
    ],
)
def test_every_curve_of_a_table_is_on_the_page(title: str, scalars: tuple[str, ...]) -> None:
    assert named(section(CURVES, title)) == set(scalars)


def test_every_file_of_a_run_is_on_the_page(run: Path) -> None:
    patterns = named(RUN_FILES)
    there = [path.relative_to(run).as_posix() for path in run.rglob("*") if path.is_file()]
    assert there and all(any(fnmatch.fnmatch(name, pattern) for pattern in patterns) for name in there), there


def test_torch_loads_all_checkpoints_and_the_page_has_their_keys(run: Path) -> None:
    checkpoints = run / "checkpoints"
    paths = [*checkpoints.glob("episode_*.pt"), checkpoints / "best.pt"]
    assert set(run.rglob("*.pt")) == set(paths) and len(paths) == 4
    table = list(rows(section(RUN_FILES, "Checkpoints")))
    for path in paths:
        kind = "best.pt" if path.name == "best.pt" else "episode_*.pt"
        keys = {
            key for cells in table if cells[1].strip(" `") in ("both", kind) for key in re.findall("`(.*?)`", cells[0])
        }
        for mapped in (False, True):
            assert torch.load(path, weights_only=True, mmap=mapped).keys() == keys


def test_the_lines_on_the_page_load_a_network_by_torch_alone(trained_run: TrainedRuns) -> None:
    best = trained_run("game=spike", "network.hidden=[32,16,8]") / "checkpoints" / "best.pt"
    code = section(RUN_FILES, "Checkpoints").partition("```python\n")[2].partition("```")[0]
    found: dict[str, Any] = {}
    exec(code.replace("runs/spike/default/checkpoints/best.pt", str(best)), found)
    game = load_game("spike")
    ours = build_network(game, settings_from_dict(TrainSettings, found["state"]["settings"]))
    ours.load_state_dict(found["state"]["acting"])
    observations = game.observe(game.deal(np.arange(50, dtype=np.uint64)))
    bits = torch.from_numpy(unpack(observations, game.bits)).float()
    values = ours(torch.from_numpy(observations.view(np.int64)))
    assert torch.allclose(found["network"](bits), values, atol=1e-5) and values.std() > 1e-3


def test_what_may_change_in_a_run_is_on_the_page() -> None:
    text = (ROOT / "docs" / "howto" / "resume.md").read_text(encoding="utf-8")
    rows = text.partition("| setting | what happens |")[2].partition("| any other setting")[0]
    keys = re.findall(r"`([a-z_.]+\*?)`", rows)
    groups = {key for key in keys if key.endswith("*")}
    assert groups == {"log_*"} | {f"{group}*" for group in CHANGEABLE_GROUPS}
    by_hydra = {"hydra.run.dir" if key == "dir" else key for key in (*CHANGEABLE, CAPACITY)}
    assert set(keys) - groups == {key for key in by_hydra if not key.startswith(("log_", "iterations"))}


def page_of(name: str) -> str:
    return (REFERENCE / "games" / f"{name}.md").read_text(encoding="utf-8")


@pytest.fixture(params=own_games())
def game(request: pytest.FixtureRequest) -> Game:
    return load_game(request.param)


def test_the_pages_of_games_have_one_form(game: Game) -> None:
    page = page_of(game.name)
    assert re.findall(r"^## (.*)$", page, re.M)[: len(FORM)] == FORM
    facts = {cells[0].strip(): cells[1] for cells in rows(page.partition("\n## ")[0])}
    assert f"{game.actions}" in facts["actions"] and f"{game.bits} bits" in facts["observation"]
    assert re.findall(r"`(\w+)`", facts["rewards"]) == list(game.rewards)
    newest = next(cells[0] for cells in rows(section(page, "Version")))
    assert newest.strip() == facts["version"].strip()


def observing(game: Game) -> Any:
    """Return the module of a game that observes: `observation`, or the rules of a small game."""
    name = f"busso.{game.name}.observation"
    return importlib.import_module(name if find_spec(name) else f"busso.{game.name}.rules")


def test_the_observation_is_that_of_the_code(game: Game) -> None:
    """The rows equal the docstring's table, where long cells span several lines."""
    docstring = observing(game).__doc__ or ""
    coded: list[list[str]] = []
    for line in re.findall(r"^\| (.*) \|$", docstring, re.M)[1:]:
        bits, _, what = (part.strip() for part in line.partition(" | "))
        if bits:
            coded.append([bits, what])
        elif what:
            coded[-1][1] += f" {what}"
    assert [[cell.strip() for cell in cells] for cells in rows(section(page_of(game.name), "Observation"))] == coded
    first = 0
    for bits, _ in coded:
        begin, _, end = bits.partition("-")
        assert int(begin) == first
        first = int(end or begin) + 1
    assert first in (
        game.bits,
        getattr(observing(game), "BITS_WITH_ACCUSI", 0),
    )


def test_all_options_rewards_players_and_actions_are_named(game: Game) -> None:
    page = page_of(game.name)
    assert named(section(page, "Options")) == {f"game.{field.name}" for field in fields(game.options)}
    assert named(section(page, "Rewards")) == set(game.rewards)
    players = named(section(page, "Players").partition("\n### ")[0])
    kinds = {f"{name}:RUN" if kind.of_network else name for name, kind in game.kinds.items()}
    wanted = {"random", *game.policies, *kinds}
    assert players - {"champion"} == wanted, f"add to docs/reference/games/{game.name}.md: {wanted - players}"
    assert ("champion" in players) == (ROOT / game.name / "champion").is_dir()
    actions = {cells[1].strip() for cells in rows(section(page, "Actions"))}
    assert game.actions == 40 or actions == {game.action_text(action) for action in range(game.actions)}


def test_the_environments_of_a_version_exist(game: Game) -> None:
    importlib.import_module("busso.envs")
    for name in re.findall(r"`(\S+)`", section(page_of(game.name), "Version").partition("\n\n")[0]):
        if name.startswith("busso.envs."):
            assert callable(importlib.import_module(name).env)
        elif name.startswith("busso/"):
            assert gymnasium.spec(name).kwargs["game"] == game.name
