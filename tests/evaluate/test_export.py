"""Exports: ONNX models match the network, describe themselves, and play without PyTorch."""

import json
import os
import re
import runpy
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
import yaml

from busso.cards.compiled.splitmix import stream
from busso.cards.game import Game, load_game
from busso.cards.play import Decisions, play
from busso.cards.players import RandomPlayer
from busso.command.settings.checks import SettingsError
from busso.command.settings.compose import compose
from busso.evaluate.export import __main__ as command
from busso.evaluate.export import onnx_file
from busso.evaluate.export.__main__ import ExportSettings, export, main
from busso.evaluate.export.agreement import ExportError, agreement, observations
from busso.evaluate.export.source import BITS, PACKED, ExportSource, open_source
from busso.train.dqn.network.build import build_network
from busso.train.dqn.network.q_network import QNetwork
from busso.train.dqn.players.champion_file import Champion
from busso.train.run.read import load_run
from tests.errors import error_about
from tests.train.runs import TrainedRuns
from tests.train.runs import settings as run_settings

ROOT = Path(__file__).parent.parent.parent
SHAPES = {
    "symmetric and dueling": ["network.hidden=[24,16,24]", "network.dueling=true"],
    "symmetric, accusi unseen": ["game.accusi=true", "network.inputs=918"],
    "plain and dueling": ["network.symmetric=false", "network.dueling=true"],
    "plain, the first bits": ["network.symmetric=false", "network.inputs=100", "network.hidden=[24,16,8]"],
    "blackjack": ["game=blackjack", "opponents.phases=[{until: null, mix: {network: 1.0}}]"],
}
OTHER_BITS = ("symmetric, accusi unseen", "plain, the first bits")


def source_of(*overrides: str, networks: int = 1) -> ExportSource:
    """Build untrained networks with non-zero biases."""
    shape = run_settings(Path("runs"), *overrides)
    game = shape.load_game()
    made = []
    for seed in range(networks):
        shape.seed = seed
        network = build_network(game, shape)
        for name, value in network.named_parameters():
            if name.endswith("bias"):
                value.uniform_(-1, 1)
        made.append(network.state_dict())
    return ExportSource("made here", Champion(shape, made, {}, "0"), {}, Path("export"))


def exported(folder: Path, source: ExportSource, form: str) -> Any:
    onnx_file.write(folder / "model.onnx", source, form)
    return onnx_file.values_of(folder / "model.onnx", source.game, form, len(source.networks))


def torch_values(source: ExportSource, words: np.ndarray[Any, Any], number: int = 0) -> Any:
    with torch.inference_mode():
        return source.networks[number](torch.from_numpy(words.view(np.int64))).numpy()


# The packing of bits does not depend on later layers.
@pytest.mark.parametrize(("shape", "form"), [*((shape, PACKED) for shape in SHAPES), *((s, BITS) for s in OTHER_BITS)])
def test_every_kind_of_network_gives_the_same_values(shape: str, form: str, tmp_path: Path) -> None:
    source = source_of(*SHAPES[shape])
    words, legal = observations(source.game, 1000)
    found = agreement(source.networks, exported(tmp_path, source, form), words, legal)
    assert found.rows == 1000 and found.apart <= 1e-5
    values = torch_values(source, words)
    assert np.ptp(values, axis=0).min() > 1e-3  # they depend on the observation


@pytest.mark.parametrize("game", ["tressette", "spike"])
def test_a_champion_plays_the_same_in_decisions_of_games(game: str, tmp_path: Path) -> None:
    source = open_source("champion", load_game(game))
    words, legal = decisions_of_games(source.game)
    assert len(np.unique(words, axis=0)) > 0.9 * len(words) > 5000 and (legal.sum(1) > 1).mean() > 0.5
    for form in (PACKED, BITS):
        found = agreement(source.networks, exported(tmp_path, source, form), words, legal)
        assert found.same == len(words) and found.apart <= 1e-5, form


def decisions_of_games(game: Game) -> tuple[Any, Any]:
    """Return observations and legal masks of random games."""
    words, masks = [], []

    def keep(decisions: Decisions, *_: object) -> None:
        words.append(decisions.observation.copy())
        masks.append(decisions.legal.copy())

    play(game, stream(7, "export", 0, 256), [RandomPlayer()], np.zeros((256, game.seats), np.uint8), watch=keep)
    mask = np.concatenate(masks)
    return np.concatenate(words), (mask[:, None] >> np.arange(game.actions, dtype=np.uint64)) & np.uint64(1) != 0


class Branching(QNetwork):
    """Network with value-dependent operations, which a graph cannot have."""

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        values = super().forward(words)
        return values if values.sum() > 0 else -values


def test_a_network_that_cannot_be_followed_is_one_line(tmp_path: Path) -> None:
    source = source_of("network.hidden=[16]")
    source.networks[:] = [Branching(source.game.bits, source.game.actions, [16], False)]
    with error_about(ExportError, "export", "cannot follow the network"):
        onnx_file.write(tmp_path / "model.onnx", source, PACKED)


class RowByRow(QNetwork):
    """Network with a loop over rows, which a graph unrolls to the example's number of rows."""

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        values = super().forward(words)
        return torch.stack([values[row] for row in range(len(values))])


def test_a_batch_that_the_exporter_fixes_is_one_line(tmp_path: Path) -> None:
    source = source_of("network.hidden=[16]")
    source.networks[:] = [RowByRow(source.game.bits, source.game.actions, [16], False)]
    with error_about(ExportError, "export", hint="x.shape[0]"):
        onnx_file.write(tmp_path / "model.onnx", source, PACKED)


def test_a_file_that_onnxruntime_refuses_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "model.onnx").write_bytes(b"no model")
    with error_about(ExportError, "export", "onnxruntime cannot run the file"):
        onnx_file.values_of(tmp_path / "model.onnx", load_game("tressette"), PACKED, 1)


def test_the_batch_is_of_any_size_and_rows_do_not_mix(tmp_path: Path) -> None:
    source = source_of("network.hidden=[24,16]")
    values = exported(tmp_path, source, PACKED)
    assert b"exported_networks" not in (tmp_path / "model.onnx").read_bytes()  # no paths of this machine
    words, _ = observations(source.game, 65)
    together = values(words, 0)
    assert together.shape == (65, 40) and values(words[:0], 0).shape == (0, 40)
    assert all(np.allclose(values(words[k : k + 1], 0), together[k], rtol=0, atol=1e-6) for k in range(65))


def test_a_mixture_says_whose_values_are_meant(tmp_path: Path) -> None:
    source = source_of("network.hidden=[16]", networks=3)
    values = exported(tmp_path, source, PACKED)
    words, legal = observations(source.game, 200)
    assert agreement(source.networks, values, words, legal).same == 200
    drawn = np.arange(200) % 3
    session = onnxruntime.InferenceSession(tmp_path / "model.onnx")
    mixed = session.run(["values"], {"observation": words, "network": drawn})[0]
    for number in range(3):
        mine = drawn == number
        assert np.allclose(mixed[mine], torch_values(source, words[mine], number), atol=1e-5)
    about = json.loads(session.get_modelmeta().custom_metadata_map["busso"])
    assert about["networks"] == 3 and "drawn" in about["drawn"]


def test_a_file_that_does_otherwise_is_noticed_and_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = source_of("network.hidden=[16]")
    values = exported(tmp_path, source, PACKED)
    words, legal = observations(source.game, 300)
    with error_about(ExportError, "export", "e-03"):
        agreement(source.networks, lambda words, k: values(words, k) + np.float32(1e-3), words, legal)
    with error_about(ExportError, "export", "nan"):
        agreement(source.networks, lambda words, k: values(words, k) * np.float32(np.nan), words, legal)
    monkeypatch.setattr(command, "observations", lambda *_: (words, legal))
    monkeypatch.setattr(onnx_file, "values_of", lambda *_: lambda words, k: np.zeros((300, 40), np.float32))
    with pytest.raises(ExportError):
        export(compose(ExportSettings, "export", [f"to={tmp_path / 'new'}"]))
    assert list((tmp_path / "new").iterdir()) == []


@pytest.fixture(scope="module")
def run(trained_run: TrainedRuns) -> Path:
    return trained_run()


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the command compare only a few values."""
    monkeypatch.setattr(command, "ROWS", 300)


def front_of(card: Path) -> dict[str, Any]:
    _, front, _ = card.read_text().split("---\n", 2)
    found: dict[str, Any] = yaml.safe_load(front)
    return found


def test_a_run_is_exported_beside_itself(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    form, name = "onnx", "model.onnx"
    assert main([f"run={run}", "license=mit"]) == 0
    said = capsys.readouterr().out
    folder = run / "export" / form
    assert sorted(path.name for path in folder.iterdir()) == sorted(["README.md", name])
    assert str(folder / name) in said and "10,000 observations" in said and str(folder / "README.md") in said
    front = front_of(folder / "README.md")
    assert front["license"] == "mit" and front["library_name"] == "busso"
    assert {"reinforcement-learning", "tressette", form} <= set(front["tags"])
    text = (folder / "README.md").read_text()
    result = load_run(run).results["random"]
    (won, _), (low, high), (mean, half) = (result[key] for key in ("win_rate", "win_rate_interval", "points"))
    (row,) = re.findall(r"^\| `random` \| (.*) \|$", text, re.M)
    measured = [float(number.rstrip("%")) for number in re.findall(r"[-+]?[\d.]+%?", row)]
    wanted = [result["deals"], 100 * won, 100 * low, 100 * high, mean, half]
    assert measured == pytest.approx(wanted, abs=0.06)
    assert "| 0-39      | own hand" in text and "39 3B" in text and "network.hidden=[16, 16]" in text
    assert main([f"run={run}"]) == 0  # its own card may be overwritten


def test_the_code_on_a_card_runs(few: None, run: Path, tmp_path: Path) -> None:
    for form in (PACKED, BITS):
        folder = tmp_path / form
        assert main([f"run={run}", f"input={form}", f"to={folder}"]) == 0
        (code,) = re.findall(r"```python\n(.*?)```", (folder / "README.md").read_text(), re.S)
        before, names = Path.cwd(), dict[str, Any]()
        try:
            os.chdir(folder)
            exec(code, names)
        finally:
            os.chdir(before)
        assert names["values"].shape == (1, 40) and 0 <= names["action"][0] < 40


def test_the_metadata_is_enough_to_play_by(few: None, run: Path, tmp_path: Path) -> None:
    assert main([f"run={run}", f"to={tmp_path}"]) == 0
    model = onnx.load(tmp_path / "model.onnx")
    (about,) = [json.loads(each.value) for each in model.metadata_props if each.key == "busso"]
    game = load_game(about["game"]["name"], about["game"]["options"])
    assert about["actions"] == [game.action_text(action) for action in range(40)]
    observation = about["observation"]
    assert (observation["bits"], observation["words"], observation["seen"]) == (918, 15, 918)
    assert "own hand" in observation["layout"] and "lowest" in observation["order"] and "greatest" in about["legal"]
    assert about["settings"]["network"]["hidden"] == [16, 16] and about["about"]["decisions"][0] > 0
    assert about["results"]["random"]["deals"] == 8
    assert about["sha256"] == onnx_file.checksum(model)
    model.graph.initializer[0].raw_data = bytes([model.graph.initializer[0].raw_data[0] ^ 1]) + bytes(
        model.graph.initializer[0].raw_data[1:]
    )
    assert about["sha256"] != onnx_file.checksum(model)


def test_results_of_another_network_are_not_claimed(few: None, run: Path, tmp_path: Path) -> None:
    newest = max((run / "checkpoints").glob("episode_*.pt"))
    assert not open_source(str(newest), load_game("tressette")).results
    assert open_source(str(run / "checkpoints" / "best.pt"), load_game("tressette")).results
    later = newest.with_name("episode_000000999999.pt")
    shutil.copy(newest, later)  # the run has continued
    try:
        assert not open_source(str(run), load_game("tressette")).results
        assert main([f"run={run}", f"to={tmp_path}"]) == 0
    finally:
        later.unlink()
    assert "Not measured" in (tmp_path / "README.md").read_text()


def refused(key: str, hint: str, *arguments: str) -> None:
    with error_about(SettingsError, key, hint=hint):
        export(compose(ExportSettings, "export", list(arguments)), any("game" in each for each in arguments))


def test_what_cannot_be_exported_is_one_line(
    few: None, run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused("run", "train it first", "run=no/where")
    refused("run", "busso export", "game=blackjack")
    refused("run", "run folder", f"run=search:{run}")
    refused("game", "leave it out", f"run={run}", "game=spike")
    refused("to", "", f"to={tmp_path}/model.onnx")
    table = tmp_path / "policy.npz"
    table.write_bytes(b"")
    refused("run", "", f"run={table}")
    (tmp_path / "README.md").write_text("# mine\n")
    refused("to", "another folder", f"run={run}", f"to={tmp_path}")
    assert (tmp_path / "README.md").read_text() == "# mine\n" and not (tmp_path / "model.onnx").exists()
    assert main(["game.signals=true", f"to={tmp_path / 'c'}"]) == 2 and not (tmp_path / "c").exists()
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    refused("export", ".[export]", f"run={run}")


BLOCKED = "import runpy, sys; sys.modules['torch'] = None; sys.argv = sys.argv[1:]; runpy.run_path(sys.argv[0])"


def test_the_example_plays_without_torch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    onnx_file.write(tmp_path / "model.onnx", open_source("champion", load_game("tressette")), PACKED)
    example = ROOT / "examples" / "play_onnx.py"
    call = [sys.executable, "-c", BLOCKED, str(example), str(tmp_path / "model.onnx"), "random"]
    found = subprocess.run(
        call, check=False, cwd=tmp_path, env=os.environ | {"PYTHONPATH": str(ROOT)}, capture_output=True, text=True
    )
    assert found.returncode == 0, found.stderr
    won = float(re.findall(r"won (0\.\d+) ±", found.stdout)[0])
    assert won > 0.8  # its card says 89.4%
    onnx_file.write(tmp_path / "bits.onnx", source_of("network.hidden=[16]"), BITS)
    monkeypatch.setattr(sys, "argv", [str(example), str(tmp_path / "bits.onnx")])
    with pytest.raises(SystemExit, match="input=packed"):
        runpy.run_path(str(example))
