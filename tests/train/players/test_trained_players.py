"""Saved networks as players in training: in the seats, in evaluations, and one-line errors."""

import csv
import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from busso.cards import player_specs
from busso.command.settings.checks import SettingsError
from busso.train.__main__ import main
from busso.train.players.trained import check_players, load_network
from busso.train.rollout.request import RolloutRequest
from busso.train.rollout.worker import RolloutWorker
from busso.train.run import checkpoint
from busso.train.run.checkpoint import CheckpointError
from busso.tressette import GAME
from tests.errors import error_about
from tests.train.runs import TARGET_NETWORK, TrainedRuns, settings, small
from tests.train.test_loop import differences, run

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def trained(trained_run: TrainedRuns) -> Path:
    return trained_run()


def mix(**shares: Any) -> str:
    shared = ", ".join(f"{name}: {share}" for name, share in shares.items())
    return f"opponents.phases=[{{until: null, mix: {{{shared}}}}}]"


def test_a_network_of_a_file_plays_as_it_would_itself(trained: Path, tmp_path: Path) -> None:
    request = RolloutRequest(0, 20, 0.0)
    alone = RolloutWorker(settings(tmp_path, *TARGET_NETWORK, mix(**{str(trained): 1.0})), CPU).play(request)
    learning = RolloutWorker(settings(tmp_path, *TARGET_NETWORK), CPU)
    learning.load(1, checkpoint.load(trained / "checkpoints" / "best.pt")["acting"])
    for a, b in zip(alone.transitions, learning.play(request).transitions, strict=True):
        assert np.array_equal(a, b)


def test_who_learned_without_accusi_sits_where_seats_declare(trained: Path) -> None:
    """It reads the bits that it knows."""
    path = trained / "checkpoints" / "best.pt"
    state = checkpoint.load(path)
    with_accusi = GAME.configure({"accusi": True})
    players = [load_network(game, path, state, CPU)[0] for game in (GAME, with_accusi)]
    states = [game.deal(np.arange(50, dtype=np.uint64)) for game in (GAME, with_accusi)]
    for game, dealt in zip((GAME, with_accusi), states, strict=True):
        game.loops.apply(dealt, np.arange(50), np.log2(game.legal(dealt) & -game.legal(dealt)).astype(np.uint8))
    assert states[1]["accusi"].any()
    seen = [game.observe(dealt) for game, dealt in zip((GAME, with_accusi), states, strict=True)]
    assert np.array_equal(players[0].values(seen[0]), players[1].values(seen[1]))


def test_resumed_equals_uninterrupted_with_all_kinds_of_players(trained: Path, tmp_path: Path) -> None:
    players = mix(network=0.6, **{str(trained): 0.2, "monte_carlo:samples:1": 0.1, "greedy": 0.1})
    given = [players, f"evaluation.opponents=[{trained},random]", "episodes=128"]
    whole = run(tmp_path / "a", *given)
    assert list(whole["players"]) == [str(trained)] and len(whole["players"][str(trained)]) == 64
    run(tmp_path / "b", *given, stop_after=64)
    assert differences(whole, run(tmp_path / "b", *given)) == []
    with (tmp_path / "a" / "tressette" / "small" / "metrics.csv").open() as file:
        (column,) = {name for row in csv.DictReader(file) for name in row if "win_rate_vs_" in name and "small" in name}
    assert re.fullmatch(r"[\w.-]+", column.removeprefix("eval/"), re.ASCII)


def test_an_opponent_that_was_trained_on_is_another_one(
    trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A run resumes with its original opponents, or not at all."""
    copy = tmp_path / "copy"
    shutil.copytree(trained, copy)
    players = mix(network=0.5, **{str(copy): 0.5})
    run(tmp_path, players, "name=b", "episodes=64")
    best = copy / "checkpoints" / "best.pt"
    checkpoint.save(best, checkpoint.load(best) | {"score": 2.0, "least": 2.0})
    assert main(small(tmp_path, players, "name=b", "episodes=96")) == 2
    line = capsys.readouterr().err.strip().splitlines()[-1]
    assert f"the file of {copy}, which it learns with, has changed" in line and "name=" in line


def test_who_cannot_play_is_one_line_before_anything_starts(
    trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(player_specs, "champion_folder", lambda game: tmp_path / "shipped")
    own = small(tmp_path)
    best = trained / "checkpoints" / "best.pt"
    damaged = tmp_path / "damaged.pt"
    damaged.write_bytes(best.read_bytes()[:-1])
    opponents = "evaluation.opponents"
    for given, error, key, hint in (
        (f"evaluation.opponents=[{tmp_path}/nothing]", SettingsError, opponents, "train it first"),
        (mix(network=0.5, **{f"{tmp_path}/x.pt": 0.5}), SettingsError, "opponents.phases.mix", "train it first"),
        (f"opponents.only={tmp_path}/x", SettingsError, "opponents.only", "train it first"),
        (f"evaluation.opponents=[{trained},{best}]", SettingsError, opponents, "each once"),
        (f"evaluation.opponents=[{damaged}]", CheckpointError, damaged, ""),
        ("evaluation.opponents=[champion]", SettingsError, opponents, "busso export"),
    ):
        with error_about(error, key, hint=hint):
            check_players(settings(tmp_path, given))
    with error_about(SettingsError, opponents, hint="game=tressette"):
        check_players(settings(tmp_path, "game=spike", f"evaluation.opponents=[{trained}]"))
    assert main([*own, f"evaluation.opponents=[{tmp_path}/nothing]"]) == 2
    assert not (tmp_path / "tressette").exists()


def test_a_run_is_not_its_own_opponent(trained: Path) -> None:
    runs = trained.parent.parent
    for name in (str(trained), f"{trained}/checkpoints/best.pt"):
        own = {
            "evaluation.opponents": f"evaluation.opponents=[{name}]",
            "opponents.phases.mix": mix(network=0.5, **{name: 0.5}),
        }
        for key, given in own.items():
            with error_about(SettingsError, key, name, hint="`network`"):
                check_players(settings(runs, given))


@pytest.mark.parametrize(
    ("given", "key", "hint"),
    [
        ("evaluation.opponents=[runs/x,runs/x/]", "evaluation.opponents", ""),
        ("evaluation.opponents=[./runs//x,runs/x]", "evaluation.opponents", ""),
        (mix(**{"runs/x": 0.5, "runs/x/": 0.5}), "opponents.phases.mix", ""),
        ("evaluation.opponents=[nobody]", "evaluation.opponents", "champion, or a run folder"),
        (mix(**{"search:runs/x": 1.0}), "opponents.phases.mix", "use runs/x"),
    ],
)
def test_spellings(tmp_path: Path, given: str, key: str, hint: str) -> None:
    with error_about(SettingsError, key, hint=hint):
        settings(tmp_path, given)
