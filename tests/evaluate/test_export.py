"""Exports: ONNX models match the network, describe themselves, and play without PyTorch."""

import io
import json
import os
import re
import runpy
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from contextlib import redirect_stdout
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch
import yaml
from onnx.reference import ReferenceEvaluator

from busso.cards.compiled.splitmix import stream
from busso.cards.game import Game, load_game
from busso.cards.play import Decisions, play
from busso.cards.players import RandomPlayer
from busso.command.settings.checks import SettingsError
from busso.command.settings.compose import compose
from busso.evaluate.export import __main__ as command
from busso.evaluate.export import onnx_file
from busso.evaluate.export.__main__ import ExportSettings, export, main
from busso.evaluate.export.card import check_free
from busso.evaluate.export.onnx_file import ExportError, difference, observations
from busso.evaluate.export.source import BITS, PACKED, ExportSource, command_of, open_source
from busso.train.network.build import build_network
from busso.train.network.q_network import DenseNetwork
from busso.train.players.champion_file import Champion
from busso.train.run.read import load_run
from busso.train.settings.resolve import changes, settings_of
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


def source_of(*overrides: str) -> ExportSource:
    """A network that has learned nothing, with biases as if it had."""
    shape = run_settings(Path("runs"), *overrides)
    network = build_network(shape.load_game(), shape)
    for name, value in network.named_parameters():
        if name.endswith("bias"):
            value.uniform_(-1, 1)
    return ExportSource("made here", Champion(shape, network.state_dict(), {}, "0"), {}, Path("export"))


def exported(source: ExportSource, form: str) -> onnx_file.Values:
    return onnx_file.values_of(onnx_file.model_of(source, form), source.game, form)


def torch_values(source: ExportSource, words: np.ndarray[Any, Any]) -> Any:
    with torch.inference_mode():
        return source.network(torch.from_numpy(words.view(np.int64))).numpy()


# The packing of bits does not depend on later layers.
@pytest.mark.parametrize(("shape", "form"), [*((shape, PACKED) for shape in SHAPES), *((s, BITS) for s in OTHER_BITS)])
def test_every_kind_of_network_gives_the_same_values(shape: str, form: str) -> None:
    source = source_of(*SHAPES[shape])
    words = observations(source.game, 1000)
    assert len(words) == 1000 and difference(source.network, exported(source, form), words) <= 1e-5
    assert np.ptp(torch_values(source, words), axis=0).min() > 1e-3  # they follow what is seen


@pytest.fixture(scope="module")
def champions() -> Callable[[str, str], bytes]:
    """Return the function that exports the champion of a game, once for all tests."""
    return cache(lambda game, form: onnx_file.model_of(open_source("champion", load_game(game)), form))


@pytest.mark.parametrize("game", ["tressette", "spike"])
def test_a_champion_plays_the_same_in_decisions_of_games(game: str, champions: Callable[[str, str], bytes]) -> None:
    source = open_source("champion", load_game(game))
    words, legal = decisions_of_games(source.game)
    assert len(np.unique(words, axis=0)) > 0.9 * len(words) > 5000 and (legal.sum(1) > 1).mean() > 0.5
    played = np.where(legal, torch_values(source, words), -np.inf).argmax(1)
    for form in (PACKED, BITS):
        values = onnx_file.values_of(champions(game, form), source.game, form)
        assert difference(source.network, values, words) <= 1e-5, form
        assert np.array_equal(np.where(legal, values(words), -np.inf).argmax(1), played), form


@pytest.mark.parametrize("game", ["tressette", "spike"])
def test_any_runtime_computes_the_default_form_and_is_checked(
    game: str, champions: Callable[[str, str], bytes]
) -> None:
    form = compose(ExportSettings, "export", []).input
    source, model = open_source("champion", load_game(game)), onnx.load_from_string(champions(game, form))
    assert model.ir_version == 8  # onnxruntime 1.14 refuses 9
    operators = {node.op_type for node in model.graph.node}
    assert not {each for each in operators if each.startswith("Bit")}  # OpenVINO computes BitShift wrongly
    assert model.graph.input[0].type.tensor_type.elem_type == onnx.TensorProto.FLOAT
    check = onnx_file.metadata(source, form)["check"]
    observation = np.zeros((1, source.game.bits), np.float32)
    observation[0, check["bits"]] = 1
    (by_another,) = ReferenceEvaluator(model).run(None, {"observation": observation})
    assert np.abs(by_another - check["values"]).max() < 1e-5
    cut = observations(source.game, 1) & np.uint64(2**32 - 1)  # what OpenVINO makes of packed words
    assert np.abs(torch_values(source, cut) - check["values"]).max() > 0.05


def decisions_of_games(game: Game) -> tuple[Any, Any]:
    """Return observations and legal masks of random games."""
    words, masks = [], []

    def keep(decisions: Decisions, *_: object) -> None:
        words.append(decisions.observation.copy())
        masks.append(decisions.legal.copy())

    play(game, stream(7, "export", 0, 256), [RandomPlayer()], np.zeros((256, game.seats), np.uint8), watch=keep)
    mask = np.concatenate(masks)
    return np.concatenate(words), (mask[:, None] >> np.arange(game.actions, dtype=np.uint64)) & np.uint64(1) != 0


class Branching(DenseNetwork):
    """Network with value-dependent operations, which a graph cannot have."""

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        values = super().forward(words)
        return values if values.sum() > 0 else -values


class RowByRow(DenseNetwork):
    """Network with a loop over rows, which a graph unrolls to the example's number of rows."""

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        values = super().forward(words)
        return torch.stack([values[row] for row in range(len(values))])


@pytest.mark.parametrize(
    ("network", "says", "hint"), [(Branching, "cannot follow the network", ""), (RowByRow, "", "x.shape[0]")]
)
def test_a_network_that_the_exporter_cannot_take_is_one_line(network: type[DenseNetwork], says: str, hint: str) -> None:
    source = source_of("network.hidden=[16]")
    vars(source)["network"] = network(source.game.bits, source.game.actions, [16], False)
    with error_about(ExportError, "export", says, hint):
        onnx_file.model_of(source, PACKED)


def test_a_file_that_onnxruntime_refuses_is_one_line() -> None:
    with error_about(ExportError, "export", "onnxruntime cannot run the file"):
        onnx_file.values_of(b"no model", load_game("tressette"), PACKED)


def test_the_batch_is_of_any_size_and_rows_do_not_mix() -> None:
    source = source_of("network.hidden=[24,16]")
    model = onnx_file.model_of(source, PACKED)
    assert b"onnx_file" not in model and str(ROOT).encode() not in model  # no names of this machine's files
    values, words = onnx_file.values_of(model, source.game, PACKED), observations(source.game, 65)
    together = values(words)
    assert together.shape == (65, 40) and values(words[:0]).shape == (0, 40)
    assert all(np.allclose(values(words[k : k + 1]), together[k], rtol=0, atol=1e-6) for k in range(65))


def test_a_file_that_does_otherwise_is_noticed_and_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = source_of("network.hidden=[16]")
    words = observations(source.game, 300)
    assert difference(source.network, lambda words: torch_values(source, words), words) == 0
    with error_about(ExportError, "export", "e-03"):
        difference(source.network, lambda words: torch_values(source, words) + np.float32(1e-3), words)
    with error_about(ExportError, "export", "nan"):
        difference(source.network, lambda words: torch_values(source, words) * np.float32(np.nan), words)
    monkeypatch.setattr(onnx_file, "model_of", lambda *_: b"another")
    monkeypatch.setattr(onnx_file, "values_of", lambda *_: lambda words: np.zeros((len(words), 40), np.float32))
    (tmp_path / "model.onnx").write_bytes(b"before")
    with pytest.raises(ExportError):
        export(compose(ExportSettings, "export", [f"to={tmp_path}"]))
    assert [path.read_bytes() for path in tmp_path.iterdir()] == [b"before"]


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


@pytest.fixture(scope="module")
def beside(run: Path) -> tuple[Path, str]:
    """The folder of a run's export where none is named, and what the command said."""
    with redirect_stdout(io.StringIO()) as said:
        assert main([f"run={run}", "license=mit"]) == 0
    return run / "export" / "onnx", said.getvalue()


def test_a_run_is_exported_beside_itself(run: Path, beside: tuple[Path, str]) -> None:
    folder, said = beside
    assert sorted(path.name for path in folder.iterdir()) == ["README.md", "model.onnx", "model.onnx.json"]
    assert str(folder / "model.onnx") in said and "10,000 observations" in said and str(folder / "README.md") in said
    front = front_of(folder / "README.md")
    assert front["license"] == "mit" and front["library_name"] == "busso"
    assert {"reinforcement-learning", "tressette", "onnx"} <= set(front["tags"])
    text = (folder / "README.md").read_text()
    result = load_run(run).results["random"]
    (won, _), (low, high), (mean, half) = (result[key] for key in ("win_rate", "win_rate_interval", "points"))
    (row,) = re.findall(r"^\| `random` \| (.*) \|$", text, re.M)
    measured = [float(number.rstrip("%")) for number in re.findall(r"[-+]?[\d.]+%?", row)]
    wanted = [result["deals"], 100 * won, 100 * low, 100 * high, mean, half]
    assert measured == pytest.approx(wanted, abs=0.06)
    check_free(folder)  # its own card may be written anew


@pytest.mark.parametrize(
    "overrides",
    [
        ["episodes=99", "learner.lr=3e-5", "network.init_from=runs/it is/x", "game.signals=true"],
        ["opponents.phases=[{until: 5, mix: {network: 1.0}}, {until: null, mix: {monte_carlo:samples:1: 1.0}}]"],
        ["game=spike", "game.raise_cap=2", "target=target_network", "target.n_step=3", "minutes=1"],
    ],
    ids=["values", "mix", "groups"],
)
def test_the_command_on_a_card_trains_the_same(overrides: list[str]) -> None:
    settings = run_settings(Path("runs"), "device=cpu", *overrides)
    program, command_line = (command_of(settings) or "").split(" train ", 1)
    differing = changes(asdict(settings), asdict(settings_of(shlex.split(command_line))))
    of_machine = ("name", "device", "rollout.", "evaluation.", "checkpoint.", "log_", "learner.threads")
    assert program == "busso" and [key for key in differing if not key.startswith(of_machine)] == []


def test_the_code_on_a_card_runs(
    few: None,
    run: Path,
    beside: tuple[Path, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main([f"run={run}", "input=packed", f"to={tmp_path}"]) == 0
    capsys.readouterr()
    for folder in (beside[0], tmp_path):
        (code,) = re.findall(r"```python\n(.*?)```", (folder / "README.md").read_text(), re.S)
        names = dict[str, Any]()
        monkeypatch.chdir(folder)
        exec(code, names)
        assert names["values"].shape == (1, 40) and 0 <= names["action"][0] < 40
        assert float(capsys.readouterr().out) < 1e-5  # of the check of a runtime


def test_the_metadata_is_enough_to_play_by(beside: tuple[Path, str]) -> None:
    model = onnx.load(beside[0] / "model.onnx")
    (about,) = [json.loads(each.value) for each in model.metadata_props if each.key == "busso"]
    assert json.loads((beside[0] / "model.onnx.json").read_text()) == about  # for JavaScript
    game = load_game(about["game"]["name"], about["game"]["options"])
    assert about["actions"] == [game.action_text(action) for action in range(40)]
    observation = about["observation"]
    assert (observation["form"], observation["bits"]) == (BITS, 918)
    assert "own hand" in observation["layout"] and "column k" in observation["order"] and "greatest" in model.doc_string
    assert about["settings"]["network"]["hidden"] == [16, 16] and about["about"]["decisions"][0] > 0
    assert about["results"]["random"]["deals"] == 8


def test_results_of_another_network_are_not_claimed(run: Path, tmp_path: Path) -> None:
    newest = max((run / "checkpoints").glob("episode_*.pt"))
    assert not open_source(str(newest), load_game("tressette")).results
    assert open_source(str(run / "checkpoints" / "best.pt"), load_game("tressette")).results
    later = newest.with_name("episode_000000999999.pt")
    shutil.copy(newest, later)  # the run has continued
    try:
        assert not open_source(str(run), load_game("tressette")).results
        assert main([f"run={run}", "format=safetensors", f"to={tmp_path}"]) == 0
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
    refused("run", "", "run=3")
    refused("run", "", "run=[champion,champion]")
    refused("format", "", "format=pickle")
    refused("run", "busso export", "game=blackjack")
    refused("run", "run folder", f"run=search:{run}")
    refused("game", "leave it out", f"run={run}", "game=spike")
    refused("to", "", f"to={tmp_path}/model.onnx")
    table = tmp_path / "policy.npz"
    table.write_bytes(b"")
    refused("run", "", f"run={table}")
    damaged = shutil.copytree(run, tmp_path / "damaged")
    (damaged / "results.json").write_text("{")
    refused(str(damaged / "results.json"), "repeat the command", f"run={damaged}")
    (tmp_path / "README.md").write_text("# mine\n")
    refused("to", "another folder", f"run={run}", f"to={tmp_path}")
    assert (tmp_path / "README.md").read_text() == "# mine\n" and not (tmp_path / "model.onnx").exists()
    assert main(["game.signals=true", f"to={tmp_path / 'c'}"]) == 2 and not (tmp_path / "c").exists()
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    refused("export", ".[export]", f"run={run}")


BLOCKED = "import runpy, sys; sys.modules['torch'] = None; sys.argv = sys.argv[1:]; runpy.run_path(sys.argv[0])"


def test_the_example_plays_without_torch(
    champions: Callable[[str, str], bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    packed, bits = tmp_path / "packed.onnx", tmp_path / "model.onnx"
    packed.write_bytes(champions("tressette", PACKED))
    bits.write_bytes(champions("tressette", BITS))
    example = ROOT / "examples" / "play_onnx.py"
    call = [sys.executable, "-c", BLOCKED, str(example), str(bits), "random"]
    found = subprocess.run(
        call, check=False, cwd=tmp_path, env=os.environ | {"PYTHONPATH": str(ROOT)}, capture_output=True, text=True
    )
    assert found.returncode == 0, found.stderr
    won = float(re.findall(r"won (0\.\d+) ±", found.stdout)[0])
    assert won > 0.8  # 89.8% by its card
    monkeypatch.setattr(sys, "argv", [str(example), str(packed)])
    with redirect_stdout(io.StringIO()) as said:
        runpy.run_path(str(example))
    assert said.getvalue() == found.stdout
