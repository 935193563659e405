"""Network and loss in a file: training, resuming, play, and errors if the file is not named."""

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import busso
from busso.base import own_files
from busso.base.own_files import OwnCodeError
from busso.cards.own.files import trust_game_file
from busso.command.settings.checks import SettingsError
from busso.command.settings.compose import settings_from_dict
from busso.evaluate.compare import main as compare
from busso.evaluate.export.__main__ import main as export
from busso.evaluate.tournament.__main__ import main as tournament
from busso.play.__main__ import main as play
from busso.train.__main__ import main as train
from busso.train.api import prepare_run
from busso.train.doctor.memory import check_job_memory
from busso.train.learner.learner import Learner
from busso.train.learner.replay_buffer import ReplayBuffer
from busso.train.network.build import build_network, check_size, inference_network, with_tried_code
from busso.train.network.own_network import loss_of
from busso.train.players.trained import load_trained
from busso.train.rollout.request import RolloutRequest
from busso.train.rollout.transitions import transitions_for
from busso.train.rollout.worker import RolloutWorker
from busso.train.run.checkpoint import CheckpointError
from busso.train.run.read import load_run
from busso.train.settings.dqn import TrainSettings
from busso.train.settings.resolve import chosen_of
from tests.errors import error_about
from tests.own.conftest import Write
from tests.own.examples import FOLDER, WAR, line_of
from tests.train.runs import TARGET_NETWORK, settings, small
from tests.train.test_loop import differences
from tests.train.test_loop import run as run_of

CPU = torch.device("cpu")
NET = str(FOLDER / "net.py")
RESIDUAL = f"{NET}:Residual:width:16"
NORM = """import torch
from torch import nn

class Norm(nn.Module):
    def __init__(self, bits, actions, game, dropout=0.1, width: int = 16):
        super().__init__()
        assert game.actions == actions
        self.frozen = nn.Parameter(torch.ones(1), requires_grad=False)
        self.layers = nn.Sequential(nn.Linear(bits, width), nn.BatchNorm1d(width), nn.Dropout(dropout), nn.ReLU())
        self.last = nn.Linear(width, actions)

    def forward(self, seen):
        return self.last(self.layers(seen)) * self.frozen
"""
BAD = """import torch
from json import JSONDecoder
from torch import nn
from torch.nn import Bilinear

class Base(nn.Module):
    def __init__(self, bits, actions):
        super().__init__()
        self.layer = nn.Linear(bits, actions)

    def forward(self, seen):
        return self.layer(seen)

class Narrow(Base):
    def forward(self, seen):
        return self.layer(seen)[:, 1:]

class Nan(Base):
    def forward(self, seen):
        return self.layer(seen) / 0 * 0

class Typo(Base):
    def forward(self, seen):
        return self.layr(seen)

class Unbuilt(Base):
    def __init__(self, bits, actions):
        self.layer = nn.Linear(bits, actions)

class Empty(nn.Module):
    def forward(self, seen):
        return seen[:, :20]

class Detached(Base):
    def forward(self, seen):
        return self.layer(seen).detach()

class Replaces(Base):
    def __init__(self, bits, actions):
        super().__init__(bits, actions)
        self.register_buffer("mean", torch.zeros(bits))

    def forward(self, seen):
        if self.training:
            self.mean = 0.9 * self.mean + 0.1 * seen.mean(0)
        return self.layer(seen - self.mean)

class Masked(Base):
    def __init__(self, bits, actions, persistent=True):
        super().__init__(bits, actions)
        self.register_buffer("mask", torch.full((2,), -torch.inf), persistent=persistent)

    def forward(self, seen):
        return self.layer(seen) + self.mask.exp().sum()

class Lazy(nn.Module):
    def __init__(self, actions):
        super().__init__()
        self.layer = nn.LazyLinear(actions)

class Needs(Base):
    def __init__(self, bits, actions, depth):
        super().__init__(bits, actions)

class NoModule:
    pass

def pairs(value, target):
    return (value - target)[:3]

def number(value, target):
    return 3.0

def nan(value, target):
    return (value - target).sum() / 0

def wrong(value, target):
    return value.nosuch

def apart(value, target):
    return (value - target).detach().mean()

def lonely(value):
    return value.mean()
"""
EVIL = """open("ran", "w")
from torch import nn
class Net(nn.Linear):
    def __init__(self, bits, actions):
        super().__init__(bits, actions)
"""


def arguments(runs: Path, *given: str) -> list[str]:
    """Return the arguments of a small run, without those of busso's own networks."""
    short = small(runs, f"game={WAR}", "episodes=128", *given)
    return [each for each in short if not each.startswith("network.hidden")]


def words(*rows: int) -> Tensor:
    """Return packed observations of two words that begin with these."""
    return torch.tensor([[row, 0] for row in rows], dtype=torch.int64)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Train the network of examples/own with its loss."""
    runs = tmp_path_factory.mktemp("runs")
    assert train(arguments(runs, f"network={RESIDUAL}", f"learner.loss={NET}:quantile")) == 0
    return runs / "war" / "small"


@pytest.fixture
def norm(write: Write) -> str:
    return f"network={write('norm.py', NORM)}"


def learner_of(chosen: TrainSettings) -> Learner:
    game = chosen.load_game()
    replay = ReplayBuffer(transitions_for(chosen.target), 4000, game.words, CPU, 1)
    replay.add(RolloutWorker(chosen, CPU).play(RolloutRequest(0, 64, 1.0)).transitions)
    return Learner(build_network(game, chosen), replay, chosen.learner, chosen.target, CPU)


def test_a_run_names_its_network_and_its_loss(trained: Path) -> None:
    trust_game_file(WAR)
    run = load_run(trained)
    assert isinstance(run.settings, TrainSettings)
    assert (run.settings.network.module, run.settings.learner.loss) == (RESIDUAL, f"{NET}:quantile")
    assert (trained / "code" / "net.py").read_text() == Path(NET).read_text()
    assert run.settings.network.hidden == [] and run.settings.learner.precision == "float32"


COMMANDS: dict[str, tuple[Callable[[list[str]], int], list[str]]] = {
    "tournament": (tournament, ["players=[{run},random]", "deals=4"]),
    "play": (play, ["opponents={run}", "ui=plain"]),
    "compare": (compare, ["{run}", "copy", "deals=4", "opponents=[random]"]),
    "safetensors": (export, ["run={run}", "format=safetensors", "to=champion"]),
    "export": (export, ["run={run}", "to=exported"]),
    "init_from": (train, ["network.init_from={run}", "name=next", "runs=runs"]),
}


@pytest.mark.parametrize("command", COMMANDS)
def test_nothing_loads_it_without_its_file(
    trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copytree(trained, "copy")
    config = Path("copy/config.yaml")
    config.write_text(config.read_text().replace("lr: 0.001", "lr: 0.002"))
    main, given = COMMANDS[command]
    code = main([f"game={WAR}", *(each.format(run=trained) for each in given)])
    line = capsys.readouterr().err.strip().splitlines()[-1]
    assert code == 2 and line.startswith("error: "), line
    assert f"{NET} is code, which runs only if you name it; if you trust it, type network={RESIDUAL}" in line


def test_a_run_that_diverges_names_the_loss(write: Write, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    late = "CALLS = []\n\ndef late(value, target):\n    CALLS.append(1)\n"
    typed = write("late.py", late + "    return ((value - target) ** 2).mean() / (len(CALLS) < 5)\n")
    assert train(arguments(tmp_path, f"learner.loss={typed}", "episodes=512", "rollout=local")) == 2
    line = capsys.readouterr().err.strip().splitlines()[-1]
    assert "the run diverged" in line and f"check {typed}:late; in a run with another name" in line


def test_the_ways_out_are_what_may_be_typed(
    trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A resumed run needs the network with its options; other commands take the same words."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(trained, "war/small")
    more = ["runs=.", "episodes=96"]
    for given in ([], [f"network={NET}"]):
        assert train([*arguments(tmp_path, *more), *given]) == 2
        assert f"network={RESIDUAL}" in capsys.readouterr().err.splitlines()[-1]
    play = [f"game={WAR}", f"players=[{trained},random]", "deals=2", "processes=1"]
    assert tournament([*play, f"network={RESIDUAL}"]) == 0
    assert tournament([*play, f"network={NET}:Other"]) == 2
    assert f"{NET}: does not define 'Other'; it defines Residual" in capsys.readouterr().err


def test_with_their_files_it_and_a_player_play_in_every_process(
    trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    players = f"players=[{trained},{FOLDER}/mine.py:Lowest:depth:1,random]"
    given = [f"game={WAR}", f"network={NET}", players, "deals=16", "batch_deals=8"]
    assert tournament([*given, f"folder={tmp_path}/a", "processes=1"]) == 0
    assert tournament([*given, f"folder={tmp_path}/b", "processes=2", "records=1"]) == 0
    one, two = ((tmp_path / name / "results.csv").read_text() for name in "ab")
    assert one == two and "mine.py:Lowest:depth:1" in one
    assert "mine.py:Lowest:depth:1" in (tmp_path / "b" / "games.jsonl").read_text()
    game = busso.load_game(WAR)
    player = busso.load_player(game, trained, network=NET)
    assert busso.duel(game, player, "random", deals=16).wins.size == 16


def test_games_of_an_edited_network_do_not_join_others(
    trained: Path, write: Write, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    typed = write("net.py", Path(NET).read_text())
    play = [f"game={WAR}", f"network={typed}", f"folder={tmp_path}/t", "deals=2", "processes=1"]
    assert tournament([*play, f"players=[{trained},random]"]) == 0
    write("net.py", Path(NET).read_text() + "# edited\n")
    assert tournament([*play, f"players=[{trained},random]"]) == 2
    said = f"code: net.py has changed since the games in {tmp_path}/t; choose another folder"
    assert said in capsys.readouterr().err
    assert tournament([*play, "players=[sluff,random]"]) == 0


def test_a_champion_of_it_plays_and_is_exported_with_its_file(
    trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = [f"game={WAR}", f"network={NET}"]
    assert export([*given, f"run={trained}", "format=safetensors", f"to={tmp_path}"]) == 0
    card = (tmp_path / "README.md").read_text()
    assert f"network.module={RESIDUAL}" in card and "network.hidden" not in card and "learner.muon" not in card
    capsys.readouterr()
    file = tmp_path / "network.safetensors"
    assert export([*given, f"run={file}"]) == 0
    assert "model.onnx" in (said := capsys.readouterr().out) and "10,000 observations" in said
    own_files._trusted.clear()
    game = busso.load_game(WAR)
    with error_about(SettingsError, "network", "runs only if you name it"):
        busso.load_player(game, file)
    assert busso.load_player(game, file, network=NET) is not None


def test_a_run_continues_from_its_network(trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`network=./net.py` names the file; the options are the run's."""
    start = f"network.init_from={trained}"
    assert train(arguments(tmp_path, f"network={NET}", start, "episodes=32")) == 0
    assert f"its shape, {RESIDUAL}" in (tmp_path / "war" / "small" / "train.log").read_text()
    capsys.readouterr()
    assert train(arguments(tmp_path, f"network={NET}:Residual:width:8", start, "name=other")) == 2
    assert f"has network.module={RESIDUAL}, not " in capsys.readouterr().err


def test_resumed_equals_uninterrupted_bit_for_bit(tmp_path: Path, norm: str) -> None:
    """With BatchNorm's statistics and Dropout's random numbers."""
    given = [f"game={WAR}", norm, *TARGET_NETWORK, "episodes=128"]
    whole = run_of(tmp_path / "a", *given)
    assert whole["learner"]["updates"] > 10
    for episodes in (32, 96):
        run_of(tmp_path / "b", *given, stop_after=episodes)
    assert differences(whole, run_of(tmp_path / "b", *given)) == []


def test_a_run_resumes_from_another_folder_and_not_with_another_network(
    trained: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(FOLDER.parent)
    given = arguments(trained.parents[1], "learner.loss=own/net.py:quantile")
    assert train([*given, "network=own/net.py:Residual:width:16"]) == 0
    assert "is complete" in capsys.readouterr().err
    assert train([*given, "network=own/net.py:Residual:width:8"]) == 2
    assert f"was started with '{RESIDUAL}'" in capsys.readouterr().err


def test_an_edited_file_whose_layers_do_not_fit_names_the_layer(
    tmp_path: Path, write: Write, norm: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert train(arguments(tmp_path, norm, "rollout=local", "episodes=32")) == 0
    write("norm.py", NORM.replace("width: int = 16", "width: int = 24"))
    capsys.readouterr()
    assert train(arguments(tmp_path, norm, "rollout=local", "episodes=64")) == 2
    line = capsys.readouterr().err.strip().splitlines()[-1]
    assert "does not match this run (Error(s) in loading state_dict for OwnNetwork: size mismatch for module." in line


def test_statistics_follow_and_targets_leave_them_alone(tmp_path: Path, norm: str) -> None:
    chosen = settings(tmp_path, f"game={WAR}", norm, *TARGET_NETWORK)
    learner = learner_of(chosen)
    before = {name: each.clone() for name, each in learner.online.state_dict().items()}
    state = torch.get_rng_state()
    learner.warm_up(learner.replay.zeros(2).observation.shape[1])
    assert learner.bootstrap is not None
    learner.bootstrap.targets(learner.replay.rows(learner.replay.draw(64)))
    assert all(each.equal(before[name]) for name, each in learner.online.state_dict().items())
    assert torch.get_rng_state().equal(state)
    learner.update()
    assert learner.average is not None and not learner.bootstrap.network.training and not learner.average.training
    for name, each in learner.online.named_buffers():
        assert not each.equal(before[name]), name
        assert each.equal(dict(learner.bootstrap.network.named_buffers())[name]), name
        assert each.equal(dict(learner.average.named_buffers())[name]), name
    assert learner.online.state_dict()["module.frozen"].equal(torch.ones(1))
    playing = inference_network(chosen.load_game(), chosen, CPU)
    playing.load_state_dict(learner.inference_weights())
    torch.testing.assert_close(playing(words(5)), playing(words(5, 9))[:1])  # no batch statistics
    assert playing.format == torch.float32


def test_the_loss_is_the_one_of_the_file(tmp_path: Path, write: Write) -> None:
    trust_game_file(WAR)
    own_files.trust(NET)
    own_files.trust(
        rows := write("rows.py", "def rows(value, target, power=2):\n    return (value - target) ** power\n")
    )
    value, target = torch.tensor([1.0, 2.0, 0.0]), torch.tensor([2.0, 0.0, 0.0])
    assert loss_of(f"{NET}:quantile")(value, target) == pytest.approx((0.6 + 0.8) / 3)
    assert loss_of(rows)(value, target) == pytest.approx(5 / 3)
    assert loss_of(f"{rows}:rows:power:4")(value, target) == pytest.approx(17 / 3)
    learners = [learner_of(settings(tmp_path, f"game={WAR}", f"learner.loss={each}")) for each in (rows, "mse")]
    for learner in learners:
        learner.update()
    assert learners[0].metrics() == pytest.approx(learners[1].metrics())


def test_it_sees_the_first_bits_and_zeros_beyond_the_last(tmp_path: Path) -> None:
    chosen = settings(tmp_path, f"game={WAR}", f"network={RESIDUAL}", "network.inputs=3")
    network = build_network(chosen.load_game(), chosen)
    assert network(words(0b101)).equal(network(words(0b11101))) and not network(words(5)).equal(network(words(4)))
    chosen.network.inputs = 200
    assert build_network(chosen.load_game(), chosen)(words(5)).shape == (1, 20)


def test_memory_is_that_of_its_parameters(tmp_path: Path) -> None:
    chosen = settings(tmp_path, f"game={WAR}", "target=lambda_returns", f"network={NET}:Residual:width:2000")
    check_job_memory(chosen, 10**9)
    with error_about(SettingsError, "network", "takes at least 0.1 GB"):
        check_job_memory(chosen, 4 * 10**8)


WRONG = {
    "Narrow": ("        return self.layer(seen)[:, 1:]", "forward: ValueError: returned [16, 19], not [16, 20]"),
    "Nan": ("        return self.layer(seen) / 0 * 0", "NaN or an infinity before any training"),
    "Typo": ("self.layr(seen)", "Typo: forward: AttributeError: 'Typo' object has no attribute 'layr'"),
    "Unbuilt": ("class Unbuilt", "Unbuilt: __init__: AttributeError: cannot assign module before"),
    "Empty": ("", "Empty: __init__: ValueError: no parameters"),
    "Detached": ("        return self.layer(seen).detach()", "the values have no gradient"),
    "Replaces": ("        if self.training:", "replaces the buffer mean; change it in place: self.mean.copy_(...)"),
    "Masked": (
        "        return self.layer(seen) + self.mask.exp().sum()",
        "the buffer mask is not finite; register it with persistent=False",
    ),
    "Lazy": ("    def __init__(self, actions)", "Lazy: __init__: ValueError: a lazy layer has no size yet"),
    "pairs": ("def pairs", "pairs: ValueError: returned [3], not a number or one per row (16)"),
    "number": ("def number", "number: ValueError: returned float, not a number"),
    "nan": ("def nan", "nan: ValueError: returned NaN or an infinity"),
    "wrong": ("value.nosuch", "wrong: AttributeError: 'Tensor' object has no attribute 'nosuch'"),
    "apart": ("def apart", "apart: ValueError: the returned value has no gradient"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_fault_is_found_before_training(tmp_path: Path, write: Write, name: str) -> None:
    """The line is the fault's, or the function's if no line is at fault."""
    part, says = WRONG[name]
    key = "network" if name[0].isupper() else "learner.loss"
    chosen = settings(tmp_path, f"game={WAR}", f"{key}={(typed := write('bad.py', BAD))}:{name}")
    line = line_of(BAD, part) if part else 0
    line += {"Narrow": -1, "Nan": -1, "Detached": -1, "Unbuilt": 2, "Replaces": -1, "Masked": -1}.get(name, 0)
    with error_about(OwnCodeError, f"{typed}:{line}" if line else typed, says):
        with_tried_code(chosen)


def test_a_mask_that_is_not_kept_may_be_infinite(tmp_path: Path, write: Write) -> None:
    with_tried_code(settings(tmp_path, f"game={WAR}", f"network={write('bad.py', BAD)}:Masked:persistent:false"))


def test_what_there_is_in_a_file(tmp_path: Path, write: Write) -> None:
    typed = write("bad.py", BAD)
    networks = "Base, Narrow, Nan, Typo, Unbuilt, Empty, Detached, Replaces, Masked, Lazy"
    for given, key, says, hint in (
        (f"network={typed}", "network", "has 10 networks", f"choose one: {networks}"),
        (f"network={typed}:Bilinear", "network", "Bilinear is not defined there", f"it has {networks}"),
        (f"network={typed}:torch", "network", "torch is not defined there", f"it has {networks}"),
        (f"network={typed}:pairs", "network", "pairs is not an nn.Module", "it has Base"),
        (f"network={typed}:NoModule", "network", "NoModule is not an nn.Module", "it has Base"),
        (f"network={typed}:Needs", "network", "Needs needs depth", "a network is constructed with bits, actions, game"),
        (f"network={RESIDUAL}:wdith:3", "network", "unknown option 'wdith'", "Residual has width, depth"),
        (f"network={NET}:Residual:width:x", "network", "width: expected an integer, not 'x'", ""),
        (f"network={NET}:Residual:bits:3", "network", "unknown option 'bits'", "Residual has width, depth"),
        (f"learner.loss={typed}", "learner.loss", "functions", "choose one: pairs"),
        (f"learner.loss={typed}:lonely", "learner.loss", "lonely needs value and target", ""),
        (f"learner.loss={typed}:JSONDecoder", "learner.loss", "is not defined there", "it has pairs"),
    ):
        chosen = settings(tmp_path, f"game={WAR}", given)
        with error_about(SettingsError, key, says, hint):
            with_tried_code(chosen)
    with error_about(SettingsError, "learner.loss", "huber, mse"):
        settings(tmp_path, "learner.loss=quantile")
    with error_about(SettingsError, "network.module", "a Python file"):
        settings(tmp_path, "network=net")


def test_the_only_network_needs_no_name(tmp_path: Path) -> None:
    chosen = with_tried_code(settings(tmp_path, f"game={WAR}", f"network={NET}:width:16"))
    assert chosen.network.module == RESIDUAL


def test_what_is_for_bussos_networks_is_left_out_or_refused(tmp_path: Path) -> None:
    typed = [f"network.module={NET}"]
    chosen = settings(tmp_path, "game=tressette", *typed)
    assert (chosen.network.symmetric, chosen.learner.muon, chosen.network.hidden) == (False, 0.0, [])
    assert prepare_run(chosen_of(chosen, typed)).settings.seed == 1
    for key in ("network.hidden", "network.symmetric", "network.dueling", "learner.muon", "learner.precision"):
        with error_about(SettingsError, key, "is for busso's own networks", "leave out"):
            chosen_of(chosen, [*typed, f"{key}=1"])
    lost = replace(chosen, network=replace(chosen.network, module="./nowhere.py:Net"))
    with error_about(SettingsError, "network.module", "file not found: ./nowhere.py"):
        chosen_of(lost, ["network.module=./nowhere.py"])


def test_a_file_that_was_not_typed_does_not_run(trained: Path, write: Write, tmp_path: Path) -> None:
    """Nor does a settings or weights file create a network that its weights do not fill."""
    evil = write("evil.py", EVIL)
    trust_game_file(WAR)
    values: dict[str, Any] = {"game": {"name": "war"}, "opponents": {"phases": [{"mix": {"network": 1.0}}]}}
    chosen = settings_from_dict(TrainSettings, values | {"network": {"module": f"{evil}:Net"}})
    with error_about(SettingsError, "network", "is code, which runs only if you name it", f"type network={evil}"):
        build_network(chosen.load_game(), chosen)
    loss = settings_from_dict(TrainSettings, values | {"learner": {"loss": f"{evil}:Net"}})
    with error_about(SettingsError, "learner.loss", "is code, which runs only if you name it"):
        loss_of(loss.learner.loss)
    assert not Path("ran").exists()
    own_files.trust(NET)
    chosen.network.module = f"{NET}:Residual:width:1000000"
    weights = build_network(chosen.load_game(), settings(tmp_path, f"game={WAR}", f"network={RESIDUAL}")).state_dict()
    with error_about(CheckpointError, "x.pt", "do not match the network of its settings"):
        check_size(chosen, weights, Path("x.pt"))
    assert load_trained(chosen.load_game(), trained, CPU)[1].network.module == RESIDUAL
