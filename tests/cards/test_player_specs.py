"""Players with options by name: syntax, construction, and one-line errors."""

import dataclasses
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from busso.base.errors import InputError
from busso.cards.compiled.splitmix import stream
from busso.cards.game import Game, PlayerKind, load_game
from busso.cards.play import Actions, Decisions, play
from busso.cards.player_specs import PlayerSpec, curve_name
from busso.cards.players import PolicyPlayer, RandomPlayer, named_player
from tests.cards.toy import TOY
from tests.errors import error_about


@dataclass(frozen=True)
class Counts:
    cards: int = 3
    ms: float = 1.5
    aloud: bool = False
    tone: str = "low"

    def __post_init__(self) -> None:
        if self.cards < 1:
            raise ValueError(f"cards: 1 and more, not {self.cards}")


class Counting:
    """Player that takes the legal card at index `cards`."""

    def __init__(self, game: Game, options: Counts) -> None:
        self.game, self.options = game, options

    def begin(self, seeds: np.ndarray) -> None:
        pass

    def act(self, decisions: Decisions) -> Actions:
        cards = [[a for a in range(self.game.actions) if int(mask) >> a & 1] for mask in decisions.legal]
        return np.array([each[self.options.cards % len(each)] for each in cards], np.uint8)


GAME = dataclasses.replace(TOY, kinds={"counting": PlayerKind(Counts, Counting)})


def counting(spec: str) -> Counts:
    player = named_player(GAME, spec)
    assert isinstance(player, Counting) and player.game is GAME
    return player.options


def test_options_have_the_types_of_their_fields() -> None:
    assert counting("counting") == Counts()
    assert counting("counting:cards:12") == Counts(cards=12)
    assert counting("counting:cards:2:ms:3:aloud:true:tone:high") == Counts(2, 3.0, True, "high")
    assert counting("counting:ms:1e-2: aloud : False") == Counts(ms=0.01)
    assert isinstance(counting("counting:ms:3").ms, float)


def test_other_players_as_before() -> None:
    assert isinstance(named_player(GAME, "random"), RandomPlayer)
    assert isinstance(named_player(GAME, "lowest"), PolicyPlayer)


def test_a_kind_plays_with_its_options() -> None:
    """Seat 0 plays the second of its three cards, then the second of two, as the option says."""
    seeds, first = stream(3, "kinds", 0, 5), []

    def watch(decisions: Decisions, actions: Actions, totals: Any) -> None:
        first.append(actions)

    play(GAME, seeds, [named_player(GAME, "counting:cards:1")], np.zeros((5, 2), np.uint8), watch=watch)
    hands = GAME.deal(seeds)["hands"][:, 0]
    assert [int(action) for action in first[0]] == [[a for a in range(8) if int(h) >> a & 1][1] for h in hands]


HAS = "counting has cards, ms, aloud, tone"
BAD = {  # problem and hint
    "counting:card:5": ("'card'", HAS),
    "counting:cards:x": ("cards: expected an integer, not 'x'", ""),
    "counting:cards:1.5": ("cards: expected an integer, not '1.5'", ""),
    "counting:ms:soon": ("ms: expected a number, not 'soon'", ""),
    "counting:ms:nan": ("ms: expected a number, not 'nan'", ""),
    "counting:aloud:1": ("aloud: expected true or false, not '1'", ""),
    "counting:cards:0": ("cards: 1 and more, not 0", ""),
    "counting:": ("missing word", "counting:samples:100"),
    "counting:cards:": ("missing word", "counting:samples:100"),
    "counting::5": ("missing word", "counting:samples:100"),
    "counting:cards": ("'cards' is not key:value", HAS),
    "counting:cards=3": ("'cards=3' is not key:value", HAS),
    "counting:ms:3:cards": ("'ms' is not key:value", HAS),
    "counting:cards:1:cards:2": ("duplicate option cards", ""),
    "lowest:cards:1": ("'cards'", "lowest has no options"),
    "lowest:runs/toy/x": ("'runs/toy/x'", "lowest has no options"),
    "random:": ("missing word", "random:samples:100"),
    "champion:samples:1": ("champion has no options", ""),
    "counter:cards:1": ("toy", "did you mean counting? Available: random, lowest, counting"),
    "runs/toy/x": ("toy", "available: random"),
    "": ("toy", "available: random"),
}


@pytest.mark.parametrize("spec", BAD)
def test_what_is_refused(spec: str) -> None:
    says, hint = BAD[spec]
    with error_about(InputError, "counter" if spec.startswith("counter") else spec, says, hint):
        named_player(GAME, spec)


def test_a_kind_of_another_game() -> None:
    with error_about(InputError, "counting", hint="random"):
        named_player(load_game("blackjack"), "counting:cards:1")


@pytest.mark.parametrize(
    ("text", "spec", "path"),
    [
        ("greedy", PlayerSpec("greedy"), None),
        ("m:samples:100:ms:0.5", PlayerSpec("m", None, {"samples": "100", "ms": "0.5"}), None),
        ("search:runs/x", PlayerSpec("search", "runs/x"), None),
        ("search:x", PlayerSpec("search", "x"), None),
        ("search:champion:samples:5", PlayerSpec("search", "champion", {"samples": "5"}), None),
        ("search:./x:samples:5:near:0", PlayerSpec("search", "./x", {"samples": "5", "near": "0"}), None),
        ("search:a/b=1,c=2 (2):samples:5", PlayerSpec("search", "a/b=1,c=2 (2)", {"samples": "5"}), None),
        ("champion", PlayerSpec("champion"), "champion"),
        ("./runs/", PlayerSpec("./runs"), "./runs"),
        ("runs//t/a.pt", PlayerSpec("runs/t/a.pt"), "runs/t/a.pt"),
        ("runs/a:b:c", PlayerSpec("runs/a:b:c"), "runs/a:b:c"),
        ("best.pt", PlayerSpec("./best.pt"), "./best.pt"),
        ("a b", PlayerSpec("./a b"), "./a b"),
        ("./mine.py", PlayerSpec("./mine.py"), "./mine.py"),
        ("mine.py:Lowest", PlayerSpec("./mine.py", "Lowest"), "./mine.py"),
        ("../a/mine.py:Lowest:depth:3", PlayerSpec("../a/mine.py", "Lowest", {"depth": "3"}), "../a/mine.py"),
        ("./mine.py:depth:3", PlayerSpec("./mine.py", None, {"depth": "3"}), "./mine.py"),
        ("runs/x.pyc", PlayerSpec("runs/x.pyc"), "runs/x.pyc"),
        ("", PlayerSpec(""), ""),
    ],
)
def test_parts_of_a_name(text: str, spec: PlayerSpec, path: str | None) -> None:
    assert PlayerSpec.parse(text) == spec and spec.path == path
    assert PlayerSpec.parse(str(spec)) == spec


words = st.from_regex(r"[a-z]\w{0,5}", fullmatch=True).filter(lambda word: word != "champion")
names = words | words.map(lambda word: f"./{word}.py")


@given(names, st.none() | st.text("ab/=,.()", min_size=1), st.dictionaries(words, words, max_size=3))
def test_a_name_is_read_as_it_is_written(who: str, of: str | None, options: dict[str, str]) -> None:
    spec = PlayerSpec(who, of, options)
    assert PlayerSpec.parse(str(spec)) == spec


@pytest.mark.parametrize(
    ("player", "name"),
    [
        ("study_heuristic", "study_heuristic"),
        ("monte_carlo:samples:100:ms:0.5", "monte_carlo.samples.100.ms.0.5"),
        ("search:runs/t/a=b c", "search.runs_t_a_b_c"),
        ("./mine.py:Lowest:depth:3", "mine.py.Lowest.depth.3"),
    ],
)
def test_names_of_curves(player: str, name: str) -> None:
    assert curve_name(player) == name
