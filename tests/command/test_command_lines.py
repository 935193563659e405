"""Command lines: flags of Hydra as in its manual, settings and players as typed, and errors in one line."""

import csv
import itertools
import json
import shlex
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import yaml
from hydra.core.override_parser.overrides_parser import OverridesParser
from hypothesis import given
from hypothesis import strategies as st

from busso.command.commands import COMMANDS
from busso.command.conf_folder import CONF
from busso.command.settings.compose import compose
from busso.command.settings.quoting import (
    Override,
    as_text,
    escaped,
    for_shell,
    hint_for,
    in_full,
    key_of,
    parsed,
    spelled,
    with_escapes,
)
from busso.command.settings.quoting import given as by_key
from busso.evaluate.report.__main__ import main as report
from busso.evaluate.tournament.__main__ import main as tournament
from busso.evaluate.tournament.settings import TournamentSettings
from busso.play.__main__ import main as play
from busso.train.settings.dqn import TrainSettings

WITH_SETTINGS = [name for name in COMMANDS if (CONF / f"{name}.yaml").exists()]


@pytest.mark.parametrize("name", WITH_SETTINGS)
def test_flags_of_every_command(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """`-cn` selects another settings file, here one that differs from the file of all but one command."""
    main, first = import_module(COMMANDS[name].module).main, COMMANDS[name].first
    for typed, says in (
        (["--cfg", "hydra", "-p", "hydra.job"], f"config_name: {name}\n"),
        (["-cn", "review", "--cfg", "job", "--resolve"], "by: auto\n"),
    ):
        assert main([*first, *typed]) == 0
        assert says in capsys.readouterr().out


def test_a_command_that_is_no_run_has_no_folder_of_hydra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert tournament(["players=[greedy,random]", "deals=2", "folder=here", "hydra.verbose=true"]) == 0
    assert [path.name for path in tmp_path.iterdir()] == ["here"]


@pytest.mark.parametrize("flags", [["--cfg", "job"], ["-c", "job"], ["--cfg=job", "--resolve"]])
def test_flags_may_stand_anywhere(flags: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in ([*flags, "seed=5"], ["seed=5", *flags]):
        assert tournament(arguments) == 0
        assert yaml.safe_load(capsys.readouterr().out)["seed"] == 5


def test_words_that_are_no_settings_become_some(capsys: pytest.CaptureFixture[str]) -> None:
    assert report(["runs/a=b", "--cfg", "job", "games=9"]) == 0
    settings = yaml.safe_load(capsys.readouterr().out)
    assert settings["run"] == ["runs/a=b"] and settings["games"] == 9
    assert play(["game=spike", "seats=3", "--cfg", "job"]) == 0
    assert yaml.safe_load(capsys.readouterr().out)["game"]["seats"] == 3


@pytest.mark.parametrize("flag", ["--config-dir", "-cd", "--config-dir="])
def test_a_folder_of_the_users_own(tmp_path: Path, flag: str, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "my = conf, 2"
    (folder / "game").mkdir(parents=True)
    (folder / "game" / "open.yaml").write_text("# @package game\nname: tressette\nsignals: true\n")
    given = [f"{flag}{folder}"] if flag.endswith("=") else [flag, str(folder)]
    assert tournament([*given, "game=open", "--cfg", "job"]) == 0
    assert yaml.safe_load(capsys.readouterr().out)["game"]["signals"] is True
    assert tournament([*given, "game=spike", "--cfg", "job"]) == 0  # busso's own settings are still found


def test_several_tournaments(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = ["players=[greedy,random]", "deals=2,4", f"hydra.sweep.dir={tmp_path}/sweep"]
    assert tournament([*given, f"folder={tmp_path}/${{deals}}", "-m"]) == 0
    assert {path.name for path in tmp_path.iterdir()} == {"2", "4", "sweep"}


# Command lines, and how their error lines begin.
MISTAKES = {
    # flags of Hydra
    "tournament --experimental-rerun job.pickle": "--experimental-rerun: loads a pickle, which can run any code",
    "tournament --exp job.pickle": "--experimental-rerun: ",
    "tournament --e=job.pickle": "--experimental-rerun: ",
    "tournament -- seed=1": "--: neither a flag nor a setting; leave it out",
    "tournament hydra.searchpath=[/nowhere]": "hydra.searchpath: missing folder /nowhere",
    "tournament -cd /nowhere": "Additional config directory '/nowhere' not found",
    # keys that this command with these choices does not have
    # flags of other programs
    "train --minutes 1": "--minutes: unknown flag; write minutes=1, or --help for the flags",
    "tournament --batch-deals=64": "--batch-deals=64: unknown flag; write batch_deals=64, or",
    "train --json": "--json: not a flag of this command, but of tournament, compare, solve, doctor and runs",
    "tournament sed=1": "sed: unknown setting; did you mean seed?",
    "solve game=blackjack plaier=2": "plaier: unknown setting; did you mean player?",
    "train learner.lrr=1": "learner.lrr: unknown setting; did you mean learner.lr?",
    "train +learner.lrr=1 seed=3": "learner.lrr: unknown setting; did you mean learner.lr?",
    "train lr=1": "lr: unknown setting; did you mean learner.lr?",
    "train lerner=1": "lerner: unknown setting; did you mean learner?",
    "train gaem=spike": "gaem: unknown setting; did you mean game?",
    "train exeriment=hour": "exeriment: unknown setting; did you mean experiment?",
    "train game=spike game.sets=3": "game.sets: unknown setting; did you mean game.seats?",
    "train algo=td game=blackjack stepsize=1": "stepsize: unknown setting; did you mean step_size?",
    "train game=tressette game.sets=3": "game.sets: unknown setting with these choices; --cfg job prints",
    "train learning=1": "learning: unknown setting with these choices; --cfg job prints",
    "export run=nowhere game=spike game.hands=3": "game.hands: a network is exported with the options",
    # choices
    "tournament game=nothing": "game: unknown choice 'nothing'; available: blackjack, sette_mezzo, spike, tressette",
    "tournament hydra/launcher=nothing": "hydra/launcher: unknown choice 'nothing'; available: array, basic",
    "train game=spiek": "game: unknown choice 'spiek'; did you mean spike? Available: blackjack, sette_mezzo, spike",
    "train experiment=nothing": "experiment: unknown choice 'nothing'; available: best_response, ",
    # values
    "tournament seed": "seed: unknown setting; write KEY=VALUE",
    "tournament seed=x": "seed: expected an integer, not x",
    "train seed=1,2": "seed=1,2: several values need --multirun",
    "tournament folder=a/b,c": "folder=a/b,c: several values need --multirun, which runs them all; for one value write "
    "\"folder='a/b,c'\"",
    "tournament players=champion,greedy": "players: expected a list; write players=[champion,greedy]",
    "train evaluation.opponents=random,greedy": "evaluation.opponents: expected a list; write evaluation.opponents=[",
    "compare run=a,b": "run: expected a list; write run=[a,b]",
    "play opponents=random,greedy": "opponents: expected a list; write opponents=[random,greedy]",
    # players and runs
    "play runs=runs/spike/default": "runs: unknown setting; write opponents=runs/spike/default for a trained agent",
    "tournament players=[gredy,random]": "players: gredy: unknown player of tressette; did you mean greedy? Avail",
    "tournament players=[champoin,random]": "players: champoin: unknown player of tressette; did you mean champion? Av",
    "tournament players=[serch:champion,random]": "players: serch: unknown player of tressette; did you mean search? A",
    "train evaluation.opponents=[radnom]": "evaluation.opponents: radnom: unknown player of tressette; did you mean ra",
    "tournament players=greedy": "players: expected a list, such as [a,b]",
    "tournament players=[greedy,monte_carlo:samples=9]": "players: Hydra cannot read [greedy,monte_carlo:samples=9]; "
    "write players=[greedy,monte_carlo:samples:9]",
    "train 'opponents.phases=[{until: null, mix: {monte_carlo:samples: 1.0}}]'": "opponents.phases.mix: "
    "monte_carlo:samples: 'samples' is not key:value; monte_carlo has samples",
}


@pytest.mark.parametrize("typed", MISTAKES)
def test_what_is_wrong_is_one_line(typed: str, capsys: pytest.CaptureFixture[str]) -> None:
    name, *arguments = shlex.split(typed)
    assert import_module(COMMANDS[name].module).main(arguments) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"error: {MISTAKES[typed]}") and error.count("\n") == 1


def test_a_run_of_a_similar_name_is_proposed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for folder in ("runs/spike/default", "runs/tressette/default", "runs/tressette/wide"):
        Path(folder).mkdir(parents=True)
    for main, typed, says in (
        (report, "default", "default is not a folder; did you mean runs/spike/default or runs/tressette/default?"),
        (report, "other", "other is not a folder; name a run folder, as in runs/tressette/default"),
        (report, "runs/tressette/wid", "runs/tressette/wid is not a folder; did you mean runs/tressette/wide?"),
        (report, "runs/tresette/wide", "runs/tresette/wide is not a folder; did you mean runs/tressette/wide?"),
        (tournament, "players=[wide,random]", "wide: unknown player of tressette; did you mean runs/tressette/wide? "),
        (tournament, "players=[runs/spike/defalt,random]", "does not exist; did you mean runs/spike/default?"),
    ):
        assert main([typed]) == 2
        assert says in capsys.readouterr().err


def test_quiet_leaves_results_warnings_and_errors(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = ["players=[greedy,random]", "deals=2", f"folder={tmp_path}/games"]
    for flags, says in (([], "written to"), (["-q"], ""), (["--quiet"], "")):
        assert tournament([*flags, *given]) == 0
        found = capsys.readouterr()
        assert "greedy" in found.out and (says in found.err if says else not found.err)
    assert tournament(["-q", "players=[nobody,random]"]) == 2
    assert capsys.readouterr().err.startswith("error: players: nobody")


def test_verbose_is_hydras_setting(capsys: pytest.CaptureFixture[str]) -> None:
    for flag in ("-v", "--verbose"):
        assert tournament([flag, "--cfg", "hydra", "--package", "hydra.verbose"]) == 0
        assert capsys.readouterr().out == "True\n"


def test_json_prints_what_the_files_have(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def printed(name: str, *arguments: str) -> Any:
        command = COMMANDS[name]
        assert import_module(command.module).main([*command.first, "--json", *arguments]) == 0
        return json.loads(capsys.readouterr().out)

    folder = tmp_path / "games"
    found = printed("tournament", "players=[greedy,random]", "deals=2", f"folder={folder}")
    assert found == json.loads((folder / "results.json").read_text()) and found["pairs"][0]["deals"] == 2
    states = printed("solve", f"folder={tmp_path}")
    with (tmp_path / "states.csv").open() as file:
        assert [{key: str(value) for key, value in row.items()} for row in states] == list(csv.DictReader(file))
    assert len(printed("solve", "player=2", "opponent=6")) < len(states)


def test_the_whole_error_on_request(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("HYDRA_FULL_ERROR", "1")
    assert tournament(["players=[nobody,random]"]) == 2
    error = capsys.readouterr().err
    assert "Traceback" in error and error.splitlines()[-1].startswith("error: players")


TYPED = {
    "greedy,monte_carlo:samples:100": ["greedy", "monte_carlo:samples:100"],
    "monte_carlo:samples:100:ms:0.5,search:runs/x": ["monte_carlo:samples:100:ms:0.5", "search:runs/x"],
    "search:champion:samples:10,champion": ["search:champion:samples:10", "champion"],
    "'search:runs/lr=1,2:samples:10',runs//x/": ["search:runs/lr=1,2:samples:10", "runs/x"],
    "./mine.py:Lowest:depth:3,../m/mine.py,/m/mine.py:x": ["./mine.py:Lowest:depth:3", "../m/mine.py", "/m/mine.py:x"],
}


@pytest.mark.parametrize("typed", TYPED)
def test_hydra_reads_players(typed: str) -> None:
    players = compose(TournamentSettings, "tournament", [f"players=[{typed}]"]).players
    assert [spelled("players", player) for player in players] == TYPED[typed]


PROPOSED = {  # rejected by Hydra
    "players=[greedy,monte_carlo:samples=100]": " players=[greedy,monte_carlo:samples:100]",
    "players=[monte_carlo:samples=100,ms=5,greedy]": " players=[monte_carlo:samples:100:ms:5,greedy]",
    "evaluation.opponents=[random],[greedy:a=1]": " evaluation.opponents=[random],[greedy:a:1]",
    "hint=monte_carlo:samples=400": " hint=monte_carlo:samples:400",
    "players=[random,search:runs/x=1:samples:10]": """ "players=[random,'search:runs/x=1:samples:10']" """,
    "players=['a:b=1',runs/x(2)]": """ "players=['a:b=1','runs/x(2)']" """,
    "players=[runs/x/lr=0.1,seed=0,greedy]": """ "players=['runs/x/lr=0.1,seed=0',greedy]" """,
    "network.init_from=runs/x/lr=0.1,seed=0": """ "network.init_from='runs/x/lr=0.1,seed=0'" """,
    r"init_from=runs/x/lr=1\,seed=0": """ "init_from='runs/x/lr=1,seed=0'" """,
    "runs=/tmp/x=y z": """ "runs='/tmp/x=y z'" """,
    "run=runs/a b (2)": """ "run='runs/a b (2)'" """,
    "name=$a=b": """ 'name='"'"'$a=b'"'"''""",
    "limits=One core (busy), 10,000 games.": """ "limits='One core (busy), 10,000 games.'" """,
    "+name=it's": r""" "+name='it\\'s'" """,
}


@pytest.mark.parametrize("typed", PROPOSED)
def test_what_is_proposed_where_hydra_refuses(typed: str) -> None:
    assert hint_for(typed) == f"write {PROPOSED[typed].strip()}"
    (word,) = shlex.split(PROPOSED[typed])
    assert hint_for(word) == "" and value_of(word) is not None


def value_of(override: str) -> object:
    return OverridesParser.create().parse_override(override).value()


@pytest.mark.parametrize(
    "typed",
    [
        *("players=[greedy,random", "x={a:1", "seed=range(a)", "x=[int(a)]", "seed=", "~x", "a b=c", "players=['a]"),
        *("seed=1,2", "players=[a,b],[c]", "learner.lr=tag(log,interval(1,2))", "x={a: runs/b}", "run='runs/a,b'"),
    ],
)
def test_nothing_is_proposed_for_mistakes_of_other_kinds(typed: str) -> None:
    assert hint_for(typed) == ""


PHASES = [
    "[{until: 9, mix: {network: 1.0}}, {until: null, each: side, mix: {network: 0.7, KEY: 0.2, random: 0.1}}]",
    "[{mix:{KEY:0.2,network:0.7,random:0.1},until:null}]",
    "[{until: null, mix: {network: 0.7, random: 0.1, KEY: 2e-1}}]",
]


@pytest.mark.parametrize(
    "player", ["monte_carlo:samples:20", "cheating:tricks:5", "champion", "./runs/lr=1", "./runs/a"]
)
def test_players_with_options_in_a_mapping(player: str) -> None:
    """All forms with Hydra's grammar; one of them composed."""
    for key, phases in itertools.product((player, escaped(player)), PHASES):
        found: Any = value_of(with_escapes(f"opponents.phases={phases.replace('KEY', key)}"))
        mix = {str(name): value for name, value in found[-1]["mix"].items()}
        assert mix == {"network": 0.7, player: 0.2, "random": 0.1}
    typed = [f"opponents.phases={PHASES[0].replace('KEY', player)}", "rollout=local", "episodes=100"]
    phase = compose(TrainSettings, "train", typed).opponents.phases[-1]
    assert phase.mix == {"network": 0.7, spelled("mix", player): 0.2, "random": 0.1}


def test_only_players_of_a_mapping_get_backslashes() -> None:
    for same in ("players=[a:b:1,c:d:2]", "opponents.phases=[{until: 5, mix: {network: 1}}]", "opponents.only=a:b:1"):
        assert with_escapes(same) == same


values = st.text("ab/=,:()[]{}'\" \\$!1.", min_size=1).map(str.strip).filter(bool)


@given(values)
def test_a_text_that_hydra_does_not_read_is_quoted(text: str) -> None:
    if (typed := as_text(text)) != text:
        assert value_of(f"x={typed}") == text
    assert not OverridesParser.create().parse_override(f"x={typed}").is_sweep_override()


@given(values)
def test_a_line_is_one_word_of_a_shell(text: str) -> None:
    assert shlex.split(for_shell(f"x={text}")) == [f"x={text}"]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("learner.lr=1e-4", Override("learner.lr", "1e-4", "")),
        ("+name=a=b@c", Override("name", "a=b@c", "+")),
        ("++seed=", Override("seed", "", "++")),
        ("~experiment", Override("experiment", None, "~")),
        ("hydra/launcher@x.y=basic", Override("hydra/launcher", "basic", "")),
        ("opponents.phases=[{until: null}]\n", Override("opponents.phases", "[{until: null}]\n", "")),
        ("", Override("", None, "")),
    ],
)
def test_the_parts_of_an_override(text: str, found: Override) -> None:
    assert parsed(text) == found


@given(st.text())
def test_every_text_has_a_key(text: str) -> None:
    assert key_of(text) in text


@pytest.mark.parametrize(
    ("text", "full"),
    [
        ("network=./net.py:Residual", "network.module=./net.py:Residual"),
        ("network={hidden:[8]}", "network={hidden:[8]}"),
        ("game=./kuhn/", "game=./kuhn"),
        ("game=../kuhn//,./war.py", "game=../kuhn,./war.py"),
        ("game=tressette", "game=tressette"),
        ("runs=./runs/", "runs=./runs/"),
    ],
)
def test_what_is_short_is_given_in_full(text: str, full: str) -> None:
    assert in_full(text) == full


def test_the_last_one_of_a_key_counts() -> None:
    assert {key: each.value for key, each in by_key(["seed=1", "name=a", "+seed=2"]).items()} == {
        "seed": "2",
        "name": "a",
    }
