"""Values in files are taken literally, and need no more memory than the files' size suggests."""

import io
import json
import resource
import zipfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from busso.base.errors import UserError
from busso.cards.game import load_game
from busso.command.conf_folder import own_games
from busso.command.settings.checks import SettingsError
from busso.command.settings.compose import settings_from_dict
from busso.command.settings.game import load_configured_game
from busso.command.settings.untrusted import MOST_VALUES, check_values, read_json, read_yaml
from busso.train.players import champion_file as champion
from busso.train.players.load import player_from_text
from busso.train.players.trained import load_trained
from busso.train.run import checkpoint
from busso.train.run.checkpoint import CheckpointError
from busso.train.settings.dqn import TrainSettings
from tests.errors import key_of
from tests.foreign.files import champion_of, change_checkpoints, change_config, header_of, write_champion
from tests.train.runs import saved, write_checkpoint

NAME, SECRET = "BUSSO_TEST_SECRET", "correct-horse"
CPU = torch.device("cpu")
SPELLINGS = [
    f"${{oc.env:{NAME}}}",
    f"x/${{oc.env:{NAME}}}/y",
    f"${{oc.decode:${{oc.env:{NAME}}}}}",
    f"\\\\${{oc.env:{NAME}}}",
    "${seed}",
]


@pytest.fixture(autouse=True)
def secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(NAME, SECRET)


@pytest.mark.parametrize("text", SPELLINGS)
@pytest.mark.parametrize(
    ("key", "values"),
    [
        ("device", lambda text: {"device": text}),
        ("evaluation.opponents.0", lambda text: {"evaluation": {"opponents": [text]}}),
        ("opponents.phases.0.mix", lambda text: {"opponents": {"phases": [{"mix": {text: 1.0}}]}}),
        ("game.reward", lambda text: {"game": {"name": "tressette", "reward": text}}),
    ],
    ids=["value", "in a list", "key", "of the game"],
)
def test_a_value_of_a_file_is_no_interpolation(text: str, key: str, values: Callable[[str], dict[str, Any]]) -> None:
    found = {"game": {"name": "tressette"}, **values(text)}
    with pytest.raises(SettingsError) as caught:
        settings_from_dict(TrainSettings, found)
    assert caught.value.key.startswith(key) and SECRET not in str(caught.value)


def set_runs(settings: dict[str, Any]) -> None:
    settings["opponents"]["only"] = None
    settings["runs"] = SPELLINGS[0]


def set_first_layer(settings: dict[str, Any]) -> None:
    settings["network"]["init_from"] = SPELLINGS[1]


@pytest.fixture
def files(trained_run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Path]:
    monkeypatch.chdir(tmp_path)
    run = trained_run(runs=Path("runs"))
    given = champion_of(run, Path("given.safetensors"), set_first_layer)
    return {"run": change_config(run, set_runs), "best": change_checkpoints(run, set_runs), "champion": given}


READERS = {
    "report": ("busso.evaluate.report.__main__", ["{}"], "run"),
    "compare": ("busso.evaluate.compare", ["{}", "runs/tressette"], "run"),
    "export": ("busso.evaluate.export.__main__", ["run={}", "to=made"], "best"),
    "export, champion": ("busso.evaluate.export.__main__", ["run={}", "to=made"], "champion"),
    "tournament": ("busso.evaluate.tournament.__main__", ["players=[{},random]", "deals=2", "processes=1"], "best"),
    "train": ("busso.train.__main__", ["rollout=local", "episodes=9", "name=new", "network.init_from={}"], "champion"),
}


@pytest.mark.parametrize("reader", READERS)
def test_no_command_resolves_what_a_file_says(
    reader: str, files: dict[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    module, arguments, kind = READERS[reader]
    main: Callable[[Sequence[str]], int] = __import__(module, fromlist=["main"]).main
    assert main([each.format(files[kind]) for each in arguments]) == 2
    output = capsys.readouterr()
    (line,) = [line for line in output.err.splitlines() if line.startswith("error: ")]
    assert str(files[kind]) in line and "${" in line and "Traceback" not in output.err
    written = [path.read_bytes() for path in Path.cwd().rglob("*") if path.is_file()]
    assert not any(SECRET.encode() in each for each in [output.out.encode(), output.err.encode(), *written])


def test_what_a_champion_says_of_itself_stays_as_it_is(trained_run: Any, tmp_path: Path) -> None:
    from busso.evaluate.export.__main__ import main

    run = trained_run()
    given = champion_of(run, tmp_path / "given.safetensors", lambda settings: None)
    header, tensors = header_of(given)
    header["about"] |= {"command": SPELLINGS[0], "limits": SPELLINGS[0]}
    write_champion(given, header, tensors)
    assert main([f"run={given}", f"to={tmp_path / 'made'}"]) == 0
    written = [path.read_bytes() for path in (tmp_path / "made").iterdir()]
    assert len(written) == 3 and all(NAME.encode() in each and SECRET.encode() not in each for each in written)


def test_the_command_line_may() -> None:
    from busso.train.settings.resolve import settings_of

    assert settings_of([f"runs=${{oc.env:{NAME}}}"]).runs == SECRET


def test_a_study_hands_no_interpolation_on(tmp_path: Path) -> None:
    pytest.importorskip("optuna")
    from tests.train.tune.searches import search

    found = search([f"runs={tmp_path}", "rollout=local", "episodes=100", "learner.lr=1e-3,1e-4"])
    assert found.trial(0, {"learner.lr": "1e-4"}).settings.learner.lr == 1e-4  # type: ignore[union-attr]
    for values in (
        {"learner.lr": f"${{oc.env:{NAME}}}"},
        {"learner.lr": "1e-4", "game.name": "trap"},
        {"hydra.searchpath": "[elsewhere]"},
    ):
        with pytest.raises(SettingsError):
            found.trial(0, values)


def test_deep_and_wide_values_are_refused() -> None:
    for values in (nested(100_000), {"a": nested(100_000)}, shared(30), {str(k): k for k in range(MOST_VALUES + 1)}):
        with pytest.raises(SettingsError):
            check_values(values)
    check_values({"a": [1, 2.0, None, True, "x"], "b": {"c": []}})


BAD = {
    read_yaml: ["[" * 20_000, "a: [" + "[" * 20_000, "a: 2026-99-99", "a: " + "9" * 5000, "a: [", "\0"],
    read_json: ["[" * 200_000, '{"a":' * 200_000, "9" * 5000, "{"],
}


@pytest.mark.parametrize("read", BAD)
def test_bad_values_are_one_line(read: Callable[[str], object]) -> None:
    for text in BAD[read]:
        with pytest.raises(ValueError) as caught:
            read(text)
        assert "\n" not in str(caught.value)


def test_a_bomb_of_yaml_is_refused() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{k}: &a{k} [{', '.join([f'*a{k - 1}'] * 9)}]" for k in range(1, 12)]
    with pytest.raises(SettingsError):
        read_yaml("\n".join(lines))


def test_metadata_of_brackets_is_one_line(trained_run: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from safetensors.torch import save

    from busso.evaluate.tournament.__main__ import main

    path = tmp_path / "deep.safetensors"
    path.write_bytes(save({"0.a": torch.zeros(1)}, {"busso": "[" * 200_000}))
    assert main([f"players=[{path},random]", "deals=2", "processes=1", f"folder={tmp_path / 'cup'}"]) == 2
    assert key_of(capsys.readouterr().err) == str(path)
    header, tensors = header_of(champion_of(trained_run(), path, lambda settings: None))
    deep = json.dumps(header).replace('"settings": {', f'"settings": {{"x": {"[" * 900}{"]" * 900},', 1)
    write_champion(path, json.loads(deep), tensors)
    with pytest.raises(CheckpointError):
        champion.read(path)


@pytest.mark.parametrize(
    "about",
    [None, [], {"hours": "x"}, {"decisions": 5}, {"decisions": ["x"]}, {"command": ["x"]}, {"limits": {"a": 1}}],
    ids=str,
)
def test_what_a_champion_says_of_itself_has_a_form(about: Any, trained_run: Any, tmp_path: Path) -> None:
    header, tensors = header_of(champion_of(trained_run(), tmp_path / "a.safetensors", lambda settings: None))
    write_champion(tmp_path / "a.safetensors", header | {"about": about}, tensors)
    with pytest.raises(CheckpointError):
        champion.read(tmp_path / "a.safetensors")


def peak() -> int:
    """Return the process's peak memory in bytes."""
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def grown(error: type[UserError], load: Callable[..., object], *arguments: object) -> int:
    """Return by how many bytes the process's peak memory grows until the error, which names the path among these."""
    before = peak()
    with pytest.raises(error) as caught:
        load(*arguments)
    (path,) = (str(each) for each in arguments if isinstance(each, Path))
    assert caught.value.key == path or path in str(caught.value)
    return peak() - before


WIDE = [[65_536, 65_536], [32] + [20_000] * 2 + [32], [1] * 200_000]


@pytest.mark.parametrize("hidden", WIDE, ids=["two", "inside", "many"])
def test_a_small_champion_builds_no_large_network(hidden: list[int], trained_run: Any, tmp_path: Path) -> None:
    def widen(settings: dict[str, Any]) -> None:
        settings["network"]["hidden"] = hidden

    run = trained_run()
    given = champion_of(run, tmp_path / "given.safetensors", widen)
    best = change_checkpoints(run, widen)
    for path in (given, best):
        assert grown(CheckpointError, load_trained, load_game("tressette"), path, CPU) < 500e6


def test_weights_that_are_one_piece_of_memory_count_once(trained_run: Any) -> None:
    best = trained_run() / "checkpoints" / checkpoint.BEST
    state, values = checkpoint.load(best), torch.zeros(1 << 20)
    state["settings"]["network"]["hidden"] = [16_384] * 2  # 1 GB
    state["acting"] |= {f"more.{k}": values for k in range(260)}
    checkpoint.save(best, state)
    assert best.stat().st_size < 10e6
    assert grown(CheckpointError, load_trained, load_game("tressette"), best, CPU) < 500e6


def deflated(body: bytes) -> bytes:
    found = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(body)) as old, zipfile.ZipFile(found, "w", zipfile.ZIP_DEFLATED) as new:
        for each in old.infolist():
            new.writestr(each.filename, old.read(each))
    return found.getvalue()


def nested(depth: int) -> Any:
    found: Any = 0
    for _ in range(depth):
        found = [found]
    return found


def shared(levels: int) -> Any:
    found: Any = 0
    for _ in range(levels):
        found = [found] * 10
    return found


SMALL_FILES = {
    "stretched": lambda: saved({"acting": {"a": torch.zeros(1).expand(1 << 32)}}),
    "stretched elsewhere": lambda: saved({"values": torch.zeros(1).expand(1 << 32)}),
    "sparse": lambda: saved({"acting": {"a": torch.sparse_coo_tensor([[0]], [1.0], (1 << 32,))}}),
    "meta": lambda: saved({"acting": {"a": torch.empty(1 << 40, device="meta")}}),
    "deflated": lambda: deflated(saved({"acting": {"a": torch.zeros(1 << 24)}})),
    "legacy": lambda: saved({"acting": {"a": torch.zeros(3)}}, _use_new_zipfile_serialization=False),
    "shared": lambda: saved({"acting": shared(9)}),
    "deep": lambda: saved({"acting": nested(200)}),
}


@pytest.mark.parametrize("kind", SMALL_FILES)
def test_a_small_checkpoint_holds_no_large_state(kind: str, tmp_path: Path) -> None:
    path = write_checkpoint(tmp_path / "small.pt", SMALL_FILES[kind]())
    assert path.stat().st_size < 1e6 and grown(CheckpointError, checkpoint.load, path) < 200e6


def test_a_small_table_takes_no_memory(tmp_path: Path) -> None:
    """A compressed table may unpack to any size."""
    path = tmp_path / "table.npz"
    np.savez_compressed(path, format=1, game=np.array("blackjack"), actions=np.zeros(3, np.uint32))
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as archive, archive.open("gaps.npy", "w") as entry:
        np.lib.format.write_array_header_1_0(entry, {"descr": "<u4", "fortran_order": False, "shape": (1 << 27,)})
        for _ in range(1 << 9):
            entry.write(bytes(1 << 20))
    assert path.stat().st_size < 2e6
    assert grown(UserError, lambda path: player_from_text(load_game("blackjack"), str(path), CPU), path) < 300e6


@pytest.mark.parametrize("game", own_games())
@pytest.mark.parametrize("value", [10**9, -1, 10**30, 1e308, "x" * 1000, None, [], True])
def test_options_of_a_game_have_bounds(game: str, value: object) -> None:
    """The size of a state is limited by the game, whatever a file says."""
    before = peak()
    for field in fields(load_game(game).options):
        with suppress(SettingsError):
            found = load_configured_game({"name": game, field.name: value})
            assert found.blank.nbytes < 4096 and found.seats <= 8 and found.bits < 4096
    assert peak() - before < 100e6
