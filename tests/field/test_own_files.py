"""Users' own settings files, paths with `~`, site-specific values, and copies that other programs leave."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import pytest
from hydra.core.override_parser.overrides_parser import OverridesParser

import busso
from busso.base.files import with_home
from busso.cards.game import load_game
from busso.cards.player_specs import POLICIES, PlayerSpec, file_of
from busso.command import conf_folder
from busso.command.settings.checks import SettingsError
from busso.command.settings.compose import compose
from busso.command.settings.untrusted import read_yaml
from busso.evaluate.replay import main as replay
from busso.evaluate.report.of_runs import scores_of
from busso.evaluate.report.runs import seeds_beside
from busso.evaluate.review.__main__ import main as review
from busso.evaluate.tournament import run as tournament
from busso.evaluate.tournament.__main__ import main
from busso.evaluate.tournament.settings import TournamentSettings
from busso.train.__main__ import main as train
from busso.train.run import checkpoint
from busso.train.run.read import load_run
from busso.train.settings.dqn import TrainSettings
from busso.train.settings.resolve import settings_of, settings_of_run
from tests.errors import error_about, key_of
from tests.train.runs import TrainedRuns

ROOT = Path(__file__).parents[2]
GLOBAL = b"# @package _global_\n"
# Content of a file, problem, and hint.
FAULTS = {
    "tab": (GLOBAL + b"learner:\n\tlr: 0.01\n", "line 3: found character '\\t'", "indent with spaces"),
    "bracket": (GLOBAL + b"learner: {lr: 0.01\nseed: 3\n", "line 3: expected ','", "brackets"),
    "twice": (GLOBAL + b"seed: 3\nseed: 4\n", "line 3: found duplicate key seed", "leave one out"),
    "control": (GLOBAL + b"name: a\x07\n", "unacceptable character #x0007", "delete it"),
    "no_header": (b"seed: 3\n", "line 1: not # @package _global_", "first line"),
    "empty": (b"", "line 1: not # @package _global_", "first line"),
    "mark": (b"\xef\xbb\xbf" + GLOBAL + b"seed: 3\n", "line 1: begins with a byte order mark", "without one"),
    "latin": (GLOBAL + b"# caf\xe9\nseed: 3\n", "line 2: not UTF-8", "save it as UTF-8"),
    "utf16": ("# @package _global_\nseed: 3\n".encode("utf-16"), "line 1: not UTF-8", "save it as UTF-8"),
}


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, bytes], Path]:
    """Return a function that writes a file into the folder `experiment` of the working folder."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "experiment").mkdir()

    def write(name: str, content: bytes) -> Path:
        path = tmp_path / "experiment" / name
        path.write_bytes(content)
        return path

    return write


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.mark.parametrize("name", FAULTS)
def test_a_file_of_ones_own_that_hydra_misreads(own: Callable[[str, bytes], Path], tmp_path: Path, name: str) -> None:
    content, says, hint = FAULTS[name]
    path = own(f"{name}.yaml", content)
    with error_about(SettingsError, path, says, hint):
        settings_of([f"hydra.searchpath=[{tmp_path}]", f"experiment={name}{'.yaml' * (name == 'tab')}"])


@pytest.mark.parametrize(
    ("flags", "choice"), [(["-cd", "."], "tab"), (["-m", "--config-dir=."], "latin,hour")], ids=["run", "sweep"]
)
def test_the_commands_say_the_same(
    own: Callable[[str, bytes], Path], capsys: pytest.CaptureFixture[str], flags: list[str], choice: str
) -> None:
    """In a sweep, before the first run."""
    name = choice.partition(",")[0]
    content, says, hint = FAULTS[name]
    own(f"{name}.yaml", content)
    assert train([*flags, f"experiment={choice}"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("error: ") and f"experiment/{name}.yaml: {says}" in line and line.endswith(hint)
    assert not Path("runs").exists()


def test_a_file_in_a_folder_with_a_space(own: Callable[[str, bytes], Path], tmp_path: Path) -> None:
    path = own("mine.yaml", b"seed: 3\n")
    moved = shutil.copytree(path.parent, tmp_path / "my conf" / "experiment")
    with error_about(SettingsError, moved / path.name, "line 1: not # @package _global_", "first line"):
        settings_of([f"hydra.searchpath=['{moved.parent}']", "experiment=mine"])


def test_a_file_that_is_right_is_not_blamed(own: Callable[[str, bytes], Path], tmp_path: Path) -> None:
    """The wrong key is on the command line, and an unclosed value is reported with its key."""
    own("mine.yaml", GLOBAL + b"seed: 3\n")
    own("open.yaml", GLOBAL + b"runs: ${oc.env:HOME\n")
    with error_about(SettingsError, "experiment", "unknown setting", "write experiment=NAME"):
        settings_of([f"hydra.searchpath=[{tmp_path}]", "experiment=mine", "experiment.seed=4"])
    with error_about(SettingsError, "runs", "missing BRACE_CLOSE"):
        settings_of([f"hydra.searchpath=[{tmp_path}]", "experiment=open"])


def test_a_file_that_hydra_does_not_look_at(own: Callable[[str, bytes], Path], tmp_path: Path) -> None:
    path = own("mine.yml", GLOBAL + b"seed: 3\n")
    for choice in ("mine", "mine.yml"):
        with error_about(SettingsError, "experiment", f"{path} is ignored", "rename it to mine.yaml"):
            settings_of([f"hydra.searchpath=[{tmp_path}]", f"experiment={choice}"])


def test_a_file_of_ones_own_with_a_wrong_key(own: Callable[[str, bytes], Path], tmp_path: Path) -> None:
    """The hint proposes a key other than the one typed."""
    own("mine.yaml", GLOBAL + b"lerner: {lr: 0.01}\n")
    own("games.yaml", GLOBAL + b"defaults:\n  - game: spike\n")
    own("list.yaml", GLOBAL + b"- seed\n")
    places = f"hydra.searchpath=[{tmp_path}]"
    with error_about(SettingsError, "lerner", hint="did you mean learner?"):
        settings_of([places, "experiment=mine"])
    with error_about(SettingsError, "experiment/game", hint="write `override /game: spike`"):
        settings_of([places, "experiment=games"])
    with error_about(SettingsError, "", "In 'experiment/list': ConfigTypeError raised while composing config: Cannot"):
        settings_of([places, "experiment=list"])


def test_a_file_of_settings_that_is_no_yaml() -> None:
    with pytest.raises(ValueError, match=r"line 2: found character '\\t'"):
        read_yaml("a:\n\tb: 1\n")


PATHS = {
    "~/x": "H/x",
    "runs=~/x": "runs=H/x",
    "runs='~/x y'": "runs='H/x y'",
    "players=[~/a,search:~/b,'search:~/c:samples:10']": "players=[H/a,search:H/b,'search:H/c:samples:10']",
    "mix={network: 0.5, ~/a: 0.5}": "mix={network: 0.5, H/a: 0.5}",
    "--config-dir=~/conf": "--config-dir=H/conf",
    **{same: same for same in ("~game", "~hydra/launcher", "runs=./~/x", "runs=a~/x", "x=~", "run=~other/x")},
}


@pytest.mark.parametrize("text", PATHS)
def test_the_home_folder_of_a_path(home: Path, text: str) -> None:
    assert with_home(text) == PATHS[text].replace("H/", f"{home}/")


def test_paths_in_settings_may_begin_at_home(home: Path, own: Callable[[str, bytes], Path], tmp_path: Path) -> None:
    """On the command line, where neither Hydra nor many shells expand ~, in files, and in Python."""
    own("mine.yaml", GLOBAL + b"runs: ~/scratch\nnetwork: {init_from: ~/n.pt}\n")
    typed = settings_of(["runs=~/a", "network.init_from=~/b", "opponents.only=~/c"])
    assert isinstance(typed, TrainSettings)
    found = (typed.runs, typed.network.init_from, typed.opponents.only)
    assert found == tuple(f"{home}/{name}" for name in "abc")
    filed = settings_of([f"hydra.searchpath=[{tmp_path}]", "experiment=mine"])
    assert isinstance(filed, TrainSettings)
    assert (filed.runs, filed.network.init_from) == (f"{home}/scratch", f"{home}/n.pt")
    tournament = compose(TournamentSettings, "tournament", ["players=[~/a,greedy]", "folder=~/t"])
    assert (tournament.players[0], tournament.folder) == (f"{home}/a", f"{home}/t")
    assert str(PlayerSpec.parse("search:~/a:samples:10")) == f"search:{home}/a:samples:10"
    with error_about(SettingsError, "run", f"{home}/nowhere"):
        busso.load_run("~/nowhere")


def test_a_file_that_a_command_reads_may_be_at_home(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Also for commands without Hydra."""
    for command in (replay, review):
        assert command(["~/games.jsonl"]) == 2
        assert key_of(capsys.readouterr().err) == f"{home}/games.jsonl"


@pytest.mark.parametrize("flags", [[], ["-m"]], ids=["run", "sweep"])
def test_a_run_is_at_home(
    home: Path, own: Callable[[str, bytes], Path], capsys: pytest.CaptureFixture[str], flags: list[str]
) -> None:
    """Hydra creates its folder, which is not possible here."""
    home.mkdir()
    (home / "x").touch()
    own("mine.yaml", GLOBAL + b"runs: ~/x\n")
    assert train([*flags, "-cd", ".", "experiment=mine"]) == 2
    assert f"cannot use {home}/x" in capsys.readouterr().err
    assert {path.name for path in Path().iterdir()} == {"experiment", "home"}


def test_the_folder_of_runs_may_be_a_number(
    own: Callable[[str, bytes], Path], capsys: pytest.CaptureFixture[str]
) -> None:
    Path("2026").touch()
    assert train(["runs=2026"]) == 2
    assert "cannot use 2026/tressette" in capsys.readouterr().err


def test_the_folder_of_another_user_is_no_folder_here() -> None:
    with error_about(SettingsError, "runs", hint="write the full path"):
        settings_of(["runs=~nobody/x"])


SITE = """
BUSSO_PYTHON="env ~/bin/python"
BUSSO_RUNS='~/it'"'"'s, scratch'
BUSSO_TMP="~/t"
"""


def test_values_of_a_site_are_taken_as_they_are(tmp_path: Path) -> None:
    """With `~`, a comma and a quote, which Hydra would parse."""
    shutil.copytree(ROOT / "slurm" / "lib", tmp_path / "slurm" / "lib")
    (tmp_path / "slurm" / "site.env").write_text(SITE)
    script = 'scontrol() { :; }; source slurm/lib/job.sh; printf "%s\\n" "${python[@]}" "$tmp" "${overrides[@]}"'
    with tempfile.TemporaryDirectory(prefix="b") as home:  # a short path
        (Path(home) / "t").mkdir()
        environment = os.environ | {"HOME": home, "SLURM_JOB_ID": "7"}
        command = ["bash", "-c", script, "job", "seed=1"]
        found = subprocess.run(command, cwd=tmp_path, env=environment, check=True, capture_output=True, text=True)
    *python, folder, runs, seed = found.stdout.splitlines()[-5:]
    assert (python, folder, seed) == (["env", f"{home}/bin/python"], f"{home}/t/busso-7", "seed=1")
    assert OverridesParser.create().parse_override(runs).value() == f"{home}/it's, scratch"


HINTS = {
    "+experiment=hour": ("experiment", "write experiment=hour"),
    "++experiment=hour": ("experiment", "write experiment=hour"),
    "+game=spike": ("game", "write game=spike"),
    "+seed=3": ("seed", "write seed=3"),
    "experiment.hour=1": ("experiment", "write experiment=NAME"),
    "episodes=1e5": ("episodes", "write 100000"),
    "learner.threads=1e1": ("learner.threads", "write 10"),
    "network.hidden=[1e2]": ("network.hidden[0]", "write 100"),
    "episodes=1.5": ("episodes", ""),
    "minutes=10m": ("minutes", ""),
}


@pytest.mark.parametrize("typed", HINTS)
def test_a_hint_is_what_can_be_written(typed: str) -> None:
    key, hint = HINTS[typed]
    with pytest.raises(SettingsError) as error:
        settings_of([typed])
    assert (error.value.key, error.value.hint) == (key, hint)


def test_a_mistyped_key_of_a_sweep_over_choices(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Reported before the first run."""
    assert train(["-m", "experiment=hour,fine_tune", "+learner.lrr=1", f"runs={tmp_path}"]) == 2
    assert "did you mean learner.lr?" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


COPIES = (
    "{}_backup{}",
    "{} (1){}",
    "{} copy{}",
    "{}.sync-conflict-20260101-120000-ABCDEFG{}",
    "._{}{}",
    "{}{}~",
    ".{}{}.swp",
)


def copy_in_many_ways(path: Path) -> None:
    for form in COPIES:
        shutil.copy(path, path.with_name(form.format(path.stem, path.suffix)))


def test_a_copied_checkpoint_is_none_of_the_run(trained_run: TrainedRuns, tmp_path: Path) -> None:
    """Copies must not hide results: `busso compare` said "seeds: 1 of 2", and the report left the run out."""
    one, two = trained_run(runs=tmp_path), trained_run("seed=2", "name=two", runs=tmp_path)
    newest = checkpoint.listed(two / "checkpoints")
    for path in (newest[0], two / "checkpoints" / checkpoint.BEST):
        copy_in_many_ways(path)
    assert checkpoint.listed(two / "checkpoints") == newest
    assert scores_of(load_run(two)) and [run.name for run in seeds_beside(load_run(one))] == ["two"]
    assert settings_of_run(two) != {}
    for path in newest:
        path.unlink()
    assert settings_of_run(two) == {}


def test_a_copied_policy_is_not_the_newest(tmp_path: Path) -> None:
    (tmp_path / "policies").mkdir()
    for iteration in (5, 50):
        (tmp_path / "policies" / POLICIES.name(iteration)).touch()
    copy_in_many_ways(tmp_path / "policies" / POLICIES.name(5))
    assert file_of(load_game("spike"), str(tmp_path)) == tmp_path / "policies" / POLICIES.name(50)


def test_what_macos_adds_to_archives_is_no_setting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A tar archive made on macOS has a binary `._NAME` for each file."""
    conf = shutil.copytree(conf_folder.CONF, tmp_path / "conf")
    for path in [*conf.rglob("*.yaml")]:
        path.with_name(f"._{path.name}").write_bytes(b"\x00\x05\x16\x07\xb0")
    before = conf_folder.own_games(), conf_folder.explained_settings("train")
    monkeypatch.setattr(conf_folder, "CONF", conf)
    assert (conf_folder.own_games(), conf_folder.explained_settings("train")) == before


def test_tournaments_of_one_second_have_a_folder_each(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Started as by a shell loop, and by a job array on several nodes."""

    class Clock(datetime):
        @classmethod
        def now(cls, tz: object = None) -> datetime:  # type: ignore[override]
            return datetime(2026, 1, 1, 12)

    monkeypatch.setattr(tournament, "datetime", Clock)
    monkeypatch.chdir(tmp_path)
    given = ["game=blackjack", "players=[hit_below_17,random]", "deals=4"]
    assert [main([*given, f"seed={seed}"]) for seed in (1, 2)] == [0, 0]
    made = sorted(Path("tournaments", "blackjack").iterdir())
    assert [path.name for path in made] == ["20260101-120000", "20260101-120000-2"]
    assert main([*given, "seed=1", f"folder={made[0]}"]) == 0  # a named folder is resumed
    capsys.readouterr()
    shutil.rmtree("tournaments")
    Path("tournaments").touch()
    assert main(given) == 2 and key_of(capsys.readouterr().err) == "folder"
