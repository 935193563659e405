"""Players and paths on a command line: Hydra's parsing, and suggestions where it fails."""

import itertools
import shlex
from typing import Any

import pytest
from hydra.core.override_parser.overrides_parser import OverridesParser
from hypothesis import given
from hypothesis import strategies as st

from busso.command.settings.checks import SettingsError
from busso.command.settings.compose import compose
from busso.command.settings.quoting import as_text, escaped, for_shell, hint_for, spelled, with_escapes
from busso.evaluate.tournament.settings import TournamentSettings
from busso.train.settings.dqn import TrainSettings
from tests.errors import error_about

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


def test_the_error_has_the_whole_line() -> None:
    line = "players=[greedy,monte_carlo:samples:9]"
    with error_about(SettingsError, "players", "Hydra cannot read [greedy,monte_carlo:samples=9]", f"write {line}"):
        compose(TournamentSettings, "tournament", ["players=[greedy,monte_carlo:samples=9]"])
    with error_about(SettingsError, "folder=a/b,c", "--multirun", "write \"folder='a/b,c'\""):
        compose(TournamentSettings, "tournament", ["folder=a/b,c"])


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
    with error_about(SettingsError, "opponents.phases.mix", "'samples'", hint="monte_carlo has samples"):
        phases = "opponents.phases=[{until: null, mix: {monte_carlo:samples: 1.0}}]"
        compose(TrainSettings, "train", [phases, "rollout=local"])


values = st.text("ab/=,:()[]{}'\" \\$!1.", min_size=1).map(str.strip).filter(bool)


@given(values)
def test_a_text_that_hydra_does_not_read_is_quoted(text: str) -> None:
    if (typed := as_text(text)) != text:
        assert value_of(f"x={typed}") == text
    assert not OverridesParser.create().parse_override(f"x={typed}").is_sweep_override()


@given(values)
def test_a_line_is_one_word_of_a_shell(text: str) -> None:
    assert shlex.split(for_shell(f"x={text}")) == [f"x={text}"]
