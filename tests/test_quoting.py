"""Names of players with options, as people type them on a command line."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from command.settings.compose import combinations, compose
from command.settings.quoting import quoted, spelled
from evaluate.tournament.settings import TournamentSettings
from train.settings.dqn import TrainSettings

SEARCH = "search(runs/tressette/default):samples=100"
TYPED = {
    "greedy,random": ["greedy", "random"],
    f"{SEARCH},greedy,monte_carlo:samples=100": [SEARCH, "greedy", "monte_carlo:samples=100"],
    "monte_carlo:samples=100:ms=5,greedy": ["monte_carlo:samples=100:ms=5", "greedy"],
    "monte_carlo:samples=100,ms=5,greedy": ["monte_carlo:samples=100:ms=5", "greedy"],
    "greedy, monte_carlo:samples=100, ms=5": ["greedy", "monte_carlo:samples=100:ms=5"],
    f"greedy,'{SEARCH}'": ["greedy", SEARCH],
    '"monte_carlo:samples=100,ms=5",greedy': ["monte_carlo:samples=100:ms=5", "greedy"],
    "search(runs/tressette/a),search(runs/tressette/b)": ["search(runs/tressette/a)", "search(runs/tressette/b)"],
    "search(runs/x/learner.lr=0.1,seed=3):ms=2,greedy": ["search(runs/x/learner.lr=0.1,seed=3):ms=2", "greedy"],
    "runs/x/learner.lr=0.001,seed=0,greedy": ["runs/x/learner.lr=0.001,seed=0", "greedy"],
    r"runs/x/lr=1\,seed=0,greedy": ["runs/x/lr=1,seed=0", "greedy"],
    "process(python bot.py --x=3,4):seconds=2,greedy": ["process(python bot.py --x=3,4):seconds=2", "greedy"],
    "process:python bot.py --x=3:seconds=2,greedy": ["process(python bot.py --x=3):seconds=2", "greedy"],
    r"process(python my\ bot.py (1)),greedy": [r"process(python my\ bot.py (1))", "greedy"],
    "\"process(python 'my bot.py')\",greedy": ["process(python 'my bot.py')", "greedy"],
    "'runs/x/lr=1,seed=0',greedy": ["runs/x/lr=1,seed=0", "greedy"],
}


@pytest.mark.parametrize("typed", TYPED)
def test_players_of_a_tournament(typed: str) -> None:
    players = compose(TournamentSettings, "tournament", [f"players=[{typed}]"]).players
    assert [spelled("players", player) for player in players] == TYPED[typed]


def test_one_player_alone() -> None:
    for player in (
        SEARCH,
        "search(runs/x)",
        "process(bot --x=3)",
        "process:bot -x:seconds=2",
        "greedy",
        "monte_carlo:ms=5",
    ):
        settings = compose(TournamentSettings, "tournament", [f"players=[{player},random]", f"anchor={player}"])
        assert settings.anchor == player


UNTOUCHED = [
    "seed=range(3)",
    "seed=1,2,3",
    "learner.lr=choice(1e-3,1e-4)",
    "opponents.phases=[{until:null,mix:{network:1.0}}]",
    "network.hidden=[512,512]",
    "players=[${game.name},b]",
    "players=['a:b=1',\"c(d)\"]",
    "x=[int(3),float(2)]",
    "+x={a:1}",
    "~x",
    "folder=runs/a",
    "until=0.5%",
]


@pytest.mark.parametrize("override", UNTOUCHED)
def test_what_hydra_understands_is_left_to_it(override: str) -> None:
    assert quoted(override) == override


@pytest.mark.parametrize("quote", ["", "'", '"'])
def test_players_with_options_in_a_mapping(quote: str) -> None:
    player = f"{quote}alpha_beta:samples=20:ms=5{quote}"
    typed = f"opponents.phases=[{{until: null, mix: {{network: 0.7, {player}: 0.2, runs/a: 0.1}}}}]"
    (phase,) = compose(TrainSettings, "train", [typed, "rollout=local"]).opponents.phases
    assert phase.mix == {"network": 0.7, "alpha_beta:samples=20:ms=5": 0.2, "runs/a": 0.1}
    assert quoted(quoted(typed)) == quoted(typed)


def test_quoted_is_quoted_once() -> None:
    for typed in TYPED:
        once = quoted(f"players=[{typed}]")
        assert quoted(once) == once


def settings_of(override: str) -> tuple[str, ...]:
    """The list that Hydra reads."""
    from hydra.core.override_parser.overrides_parser import OverridesParser

    value = OverridesParser.create().parse_override(quoted(override)).value()
    return tuple(str(each).strip("'") for each in value)


names = st.from_regex(r"[a-z][a-z0-9_]{0,5}", fullmatch=True).filter(lambda name: name not in ("null", "true", "false"))


@given(st.lists(st.tuples(names, st.lists(st.tuples(names, names), max_size=3)), min_size=2, max_size=4), st.booleans())
def test_any_players_are_read_as_they_are_typed(players: list[tuple[str, list[tuple[str, str]]]], comma: bool) -> None:
    between = "," if comma else ":"
    typed = [
        name + (":" + between.join(f"{key}={value}" for key, value in options) if options else "")
        for name, options in players
    ]
    assert list(settings_of(f"players=[{','.join(typed)}]")) == typed


def test_sweeps_over_players() -> None:
    key = "evaluation.opponents"
    found = combinations([f"{key}=[random],[monte_carlo:samples=20,greedy]", "seed=1,2"])
    assert len(found) == 4
    swept = {settings_of(f"{key}={each[key]}") for each in found}
    assert swept == {("random",), ("monte_carlo:samples=20", "greedy")}
