"""Runs of tabular learning by command: tables, curves, errors."""

import csv
import json
from pathlib import Path

import pytest
import torch
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from busso.command.settings.compose import compose
from busso.train.__main__ import main
from busso.train.run import checkpoint
from busso.train.run.folder import RunFolder
from busso.train.run.runner import Runner
from busso.train.settings.tabular import TabularSettings
from busso.train.tabular.trainer import SCALARS, LearnedTable, TabularTrainer, table_of
from tests.errors import error_about


def loaded(path: Path) -> LearnedTable:
    return table_of(*checkpoint.load_named(path))


def arguments(runs: Path, *more: str) -> list[str]:
    small = [
        "episodes=30000",
        "log_every_episodes=10000",
        "checkpoint.every_episodes=8000",
        "checkpoint.min_seconds=0",
        "checkpoint.max_seconds=0",
        "min_visits=100",
    ]
    return [*small, f"runs={runs}", "name=small", *more]


@pytest.mark.parametrize(
    ("experiment", "algo", "width"),
    [("blackjack_mc", "monte_carlo", 1), ("blackjack_td", "td", 1), ("blackjack_q", "q_learning", 2)],
)
def test_experiments(tmp_path: Path, experiment: str, algo: str, width: int, capsys: pytest.CaptureFixture) -> None:
    assert main([f"experiment={experiment}", *arguments(tmp_path)]) == 0
    run = tmp_path / "blackjack" / "small"
    said = capsys.readouterr().out
    assert said.startswith(f"{algo}: 30,000 episodes") and "greatest error: 0." in said
    assert ("loss of expected reward" in said) == (algo == "q_learning")
    with (run / "metrics.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [float(row["rollout/episodes"]) for row in rows] == [10000, 20000, 30000]
    assert list(rows[0]) == ["env_steps", *SCALARS]
    assert float(rows[-1]["error/greatest"]) > float(rows[-1]["error/mean"]) > 0
    board = EventAccumulator(str(run / "tensorboard")).Reload()
    assert [event.step for event in board.Scalars("error/mean")] == [int(row["env_steps"]) for row in rows]
    results = json.loads((run / "results.json").read_text())
    assert results["episodes"] == 30000 and results["env_steps"] == int(rows[-1]["env_steps"])
    table = loaded(run)
    assert table.values.shape[1] == table.visits.shape[1] == width
    if algo != "monte_carlo":  # it counts first visits, and here every visit is one
        assert table.visits.sum() == results["env_steps"]
    saved = checkpoint.listed(run / "checkpoints")
    assert len(saved) == 3 and torch.load(saved[0], weights_only=True)["values"].shape == table.values.shape


def test_batches_end_at_checkpoints_and_log_rows(tmp_path: Path) -> None:
    settings = compose(TabularSettings, "train", ["algo=q_learning", *arguments(tmp_path)])
    looks = []
    with RunFolder(settings) as folder:
        trainer = TabularTrainer(settings, folder)
        Runner(trainer, folder, lambda: bool(looks.append(trainer.counters.episodes))).run()
    assert looks == [0, 8000, 10000, 16000, 20000, 24000]  # not at 30000


def test_minutes_end_a_run(tmp_path: Path) -> None:
    settings = compose(TabularSettings, "train", ["algo=q_learning", *arguments(tmp_path, "minutes=0.0000001")])
    with RunFolder(settings) as folder:
        trainer = TabularTrainer(settings, folder)
        assert Runner(trainer, folder, lambda: False).run()
    assert 0 < trainer.counters.episodes < settings.episodes


def test_a_table_is_read_from_the_newest_good_checkpoint(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    assert main(["experiment=blackjack_td", *arguments(tmp_path)]) == 0
    folder = tmp_path / "blackjack" / "small"
    newest, before, *_ = checkpoint.listed(folder / "checkpoints")
    newest.write_bytes(newest.read_bytes()[:-1])
    assert (loaded(folder).values == loaded(before).values).all()
    assert "damaged" in caplog.text
    for path in checkpoint.listed(folder / "checkpoints"):
        path.write_bytes(b"nothing")
    with error_about(checkpoint.CheckpointError, folder / "checkpoints", hint="name="):
        loaded(folder)
    assert main(["experiment=blackjack_td", *arguments(tmp_path)]) == 2


def test_tables_that_are_none(tmp_path: Path) -> None:
    assert main(["algo=q_learning", "game=sette_mezzo", *arguments(tmp_path), "episodes=100"]) == 0
    good = checkpoint.load(checkpoint.listed(tmp_path / "sette_mezzo/small/checkpoints")[0])
    broken = [
        good | {"values": good["values"][:-1]},
        good | {"visits": good["visits"][:, :1]},
        good | {"values": good["values"] + float("nan")},
        {key: value for key, value in good.items() if key != "visits"},
        good | {"settings": {"game": {"name": "chess"}}},
        good | {"settings": 5},
        {"acting": torch.zeros(3)},
    ]
    for number, state in enumerate(broken):
        path = tmp_path / f"{number}.pt"
        checkpoint.save(path, state)
        with error_about(checkpoint.CheckpointError, path):
            loaded(path)
    with error_about(checkpoint.CheckpointError, tmp_path, hint="train it first"):
        loaded(tmp_path)
    with error_about(checkpoint.CheckpointError, tmp_path / "nothing.pt"):
        loaded(tmp_path / "nothing.pt")


@pytest.mark.parametrize(
    ("more", "error"),
    [
        (["algo=q_learning", "game=tressette"], "algo: q_learning needs a game whose states can be enumerated"),
        (["algo=q_learning", "policy=hit_below_14"], "policy: q_learning finds its own"),
        (["algo=q_learning", "game.reward=money"], "game.reward: expected one of value, not 'money'"),
        (["algo=td", "policy=null"], "policy: td needs a policy"),
        (
            ["algo=td", "policy=hit_below_3"],
            "policy: unknown policy 'hit_below_3' of blackjack; available: hit_below_4",
        ),
        (["algo=td", "rollout=local"], "rollout"),
        (["algo=td", "epsilons=0.1"], "epsilons"),
        (["experiment=blackjack_z"], "blackjack_z"),
    ],
)
def test_bad_settings(tmp_path: Path, more: list[str], error: str, capsys: pytest.CaptureFixture) -> None:
    assert main([*more, f"runs={tmp_path}"]) == 2
    said = capsys.readouterr().err
    assert said.startswith("error: ") and error in said and said.count("\n") == 1
