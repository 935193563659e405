"""Faults of a game in a file: one line with the function, found in 16 games before anything starts."""

import pytest

from busso.base.errors import InputError
from busso.base.own_files import OwnCodeError
from busso.cards import packages
from busso.cards.own.files import game_with, trust_game_file
from busso.cards.own.trial import GameTrial
from busso.evaluate import check
from tests.errors import error_about
from tests.own.conftest import Write
from tests.own.examples import WAR, changed, line_of

KIT = ("import numpy as np\n", "import numpy as np\n\nfrom busso import kit\n")
# By change of war.py: function and problem. The reported line is that of the `def`, or of the fault.
WRONG = {
    "an unknown block": (
        ("put(words, SEES.hand, state.hands[seat])", "put(words, SEES.hnad, state.hands[seat])"),
        "SEES.hnad",
        "observe: cannot be compiled: Unknown attribute 'hnad' of type Layout",
    ),
    "an unknown field": (
        ("state.led = card\n", "state.ledd = card\n"),
        "def apply",
        "apply: STATE has no field 'ledd'; it has turn, led, taken, hands, played, seed",
    ),
    "an unknown global": (
        ("state.led = card\n", "state.led = crad\n"),
        "def apply",
        "apply: cannot be compiled: NameError: name 'crad' is not defined",
    ),
    "nothing is legal": (
        ("return following if following else hand", "return following & ~hand"),
        "def legal",
        "legal: no action is legal in a game that is not over",
    ),
    "legal when over": (
        ("    if state.led == NONE:\n        return hand", "    if state.led == NONE:\n        return hand or bit(0)"),
        "def legal",
        "legal: an action is legal in a game that is over",
    ),
    "an action beyond": (
        ("    return following if following else hand", "    return (following if following else hand) | bit(20)"),
        "def legal",
        "legal: an action beyond 20 is legal",
    ),
    "a bit beyond": (
        ("put(words, SEES.hand, state.hands[seat])",
         "put(words, SEES.hand, state.hands[seat])\n    words[1] |= bit(63)"),
        "def observe",
        "observe: sets a bit beyond the 100 of the layout",
    ),
    "a number that is too large": (
        (
            "put_thermometer(words, SEES.other_tricks, state.taken[1 - seat])",
            "put_thermometer(words, SEES.other_tricks, state.taken[1 - seat] + 9)",
        ),
        "put_thermometer(words, SEES.other_tricks",
        "observe: 11 is written to the block `other_tricks`, which holds 0 to 10",
    ),
    "a block that is too small": (
        ("hand=CARDS,", "hand=CARDS - 1,"),
        "put(words, SEES.hand",
        "observe: bit 19 is set in the block `hand`, which has 19",
    ),
    "a place in no block": (
        ("put(words, SEES.hand, state.hands[seat])", "put(words, SEES.hand + 100, state.hands[seat])"),
        "put(words, SEES.hand",
        "observe: 100 is not the offset of a block of the layout",
    ),
    "an unsigned difference": (
        ("if card // RANKS == state.led // RANKS and card > state.led:",
         "if card // RANKS == state.led // RANKS and int(card) - int(state.led) > 0:"),
        "def apply",
        "`turn` is 1 in compiled code and 0 in plain Python; compiled integers are unsigned",
    ),
    "beyond an array": (
        ("state.taken[state.turn] += 1", "state.taken[state.turn + 1] += 1"),
        "state.taken[state.turn + 1]",
        "apply: IndexError: index 2 is out of bounds for axis 0 with size 2",
    ),
    "beyond an array, after a call by keyword": (
        ("following = hand & suit_of(state.led)", "following = hand & suit_of(card=state.led) & state.hands[2]"),
        "suit_of(card=state.led)",
        "legal: IndexError: index 2 is out of bounds for axis 0 with size 2",
    ),
    "beyond an array, in a deal": (
        ("state.played[:] = 0\n", "state.played[2] = 0\n"),
        "state.played[2]",
        "deal: IndexError: index 2 is out of bounds for axis 0 with size 2",
    ),
    "a block that is too small, by a name in a module": (
        ("put(words, SEES.hand, state.hands[seat])", "kit.put(words, SEES.hand, state.hands[seat] << np.uint64(1))"),
        "kit.put(words",
        "observe: bit 20 is set in the block `hand`, which has 20",
    ),
    "a fraction as a mask": (
        ("    return following if following else hand", "    return 0 if state.led == 3 else following or hand"),
        "def legal",
        "legal: returns a fraction in compiled code",
    ),
    "an unsigned difference in a policy": (
        ("    return lowest(legal(state))", "    card = lowest(legal(state))\n    back = kit.highest(legal(state))\n"
         "    return back if state.turn - state.taken[1] < 0 else card"),
        "def sluff",
        "sluff: is ",
    ),
    "the result of one seat": (
        ("out[:] = state.taken", "out[0] = state.taken[0]"),
        "def returns",
        "returns: the result of seat 1 is not set, or not a number; set out[seat] for each seat",
    ),
    "hidden cards": (
        ("put(words, SEES.table, bit(state.led))", "put(words, SEES.table, bit(state.led))\n"
         "    put(words, SEES.other_played, state.hands[1 - seat])"),
        "def observe",
        "observe: seat 1 sees in `other_played` exactly what seat 0 may play",
    ),
    "no end": (
        ("return state.taken[0] + state.taken[1] == TRICKS", "return state.taken[0] == TRICKS + 1"),
        "def legal",
        "legal: no action is legal in a game that is not over",
    ),
    "over at once": (
        ("return state.taken[0] + state.taken[1] == TRICKS", "return state.taken[0] + state.taken[1] >= 0"),
        "def over",
        "over: the game is over as soon as it is dealt",
    ),
    "a wrong total": (
        ("total=TRICKS", "total=TRICKS + 1"),
        "def returns",
        "returns: they add up to [10.0], not to the total of 11",
    ),
    "a reward that is too large": (
        ("total=TRICKS, ", ""),
        "def returns",
        "per game, but rewards from -1 to 1 are learned best; set total= to the sum of the results, or set scale=",
    ),
    "chance of its own": (
        ("shuffle(CARDS, seed)", "np.random.permutation(CARDS)"),
        "def deal",
        "deal: gives different results from one seed: all randomness must come from the seed",
    ),
    "a field that is not set": (
        ("    state.played[:] = 0\n", ""),
        "def deal",
        "deal: does not set played",
    ),
    "a policy that never ends a game": (
        ("    state.hands[seat] ^= bit(card)\n",
         "    hand = state.hands[seat]\n    if state.led == NONE and lowest(hand) == card != kit.highest(hand):"
         "\n        return\n    state.hands[seat] ^= bit(card)\n"),
        "def sluff",
        "sluff: a game has not ended after 10,000 moves",
    ),
    "a policy that breaks a rule": (
        ("    return lowest(legal(state))", "    return 19 - lowest(legal(state))"),
        "def sluff",
        "sluff: ",
    ),
    "a policy that cannot be compiled": (
        ("    return lowest(legal(state))", "    return lowest(legal(state)).nothing"),
        "lowest(legal(state)).nothing",
        "sluff: cannot be compiled: Unknown attribute 'nothing'",
    ),
}  # fmt: skip


@pytest.mark.parametrize("wrong", WRONG)
def test_it_is_said_with_its_function(wrong: str, write: Write) -> None:
    change, at, says = WRONG[wrong]
    text = changed(WAR, KIT, change)
    line = line_of(text, at) - at.startswith("def ")  # that of its decorator
    with error_about(OwnCodeError, f"./bad.py:{line}", says):
        trust_game_file(write("bad.py", text))


# Correct games whose plain Python needs care: NumPy's widths of arrays, and integers that wrap on purpose.
RIGHT = {
    "an array of small unsigned numbers": (
        "    return state.taken[0] + state.taken[1] == TRICKS",
        "    most = (state.taken * 50).sum() + state.taken.max() * 50\n"
        "    return most >= 0 and state.taken[0] + state.taken[1] == TRICKS",
    ),
    "an array changed in place": (
        "    state.taken[state.turn] += 1\n",
        "    state.taken[state.turn] += 1\n    fresh = np.zeros(2, np.int64)\n"
        "    fresh += state.taken\n    state.taken[:] = fresh\n",
    ),
    "a signed hash": (
        "    state.led = NONE\n\n",
        "    state.led = NONE\n    key = int(np.int64(card) + 7)\n    for k in range(9):\n"
        "        key = key * 6364136223846793005 + 1442695040888963407\n"
        "    state.turn = (state.turn + (key >> 40) % 2) % 2\n\n",
    ),
    "a shuffle by random numbers of the kit": (
        "    for place, card in enumerate(shuffle(CARDS, seed)):\n        state.hands[place % 2] |= bit(card)",
        "    cards, random = np.arange(CARDS), seed\n    for last in range(CARDS - 1, -1, -1):\n"
        "        random = kit.mix(random + kit.GAMMA)\n        other = int(kit.below(random, last + 1))\n"
        "        cards[last], cards[other] = cards[other], cards[last]\n"
        "        state.hands[last % 2] |= bit(cards[last])",
    ),
    "a copy of the state, and numbers cut to eight bits": (
        "    return lowest(legal(state))",
        "    copy = np.zeros(1, STATE)\n    copy[0].taken[0] = np.uint8(300 + lowest(legal(state)))\n"
        "    return lowest(legal(state)) if copy[0].taken[0] < 100 else kit.highest(legal(state))",
    ),
    "a deal that may end the game": (
        "        state.hands[place % 2] |= bit(card)",
        "        state.hands[place % 2] |= bit(card)\n    if seed % np.uint64(2) == 1:\n"
        "        state.hands[:] = 0\n        state.taken[:] = TRICKS // 2",
    ),
    "records in the state": (
        '    ("led", np.uint8),',
        '    ("one", [("p", np.uint8), ("q", np.int16, 4)]),\n    ("led", np.uint8),',
    ),
    "the lowest bit": (
        "    return following if following else hand",
        "    lowest_bit = hand & -hand\n    return following if following else hand | lowest_bit",
    ),
}


@pytest.mark.parametrize("right", RIGHT)
def test_what_is_right_passes_and_is_compared(right: str, write: Write) -> None:
    game = trust_game_file(typed := write("good.py", changed(WAR, KIT, RIGHT[right])))
    file = packages.game_file(game.name)
    assert file is not None and file.typed == typed
    both = GameTrial(game, file).compare(500)
    assert not both.unable
    assert both.compared["apply"] == 500 and both.compared["returns"] == both.compared["deal"] - 1 > 10
    assert both.compared.keys() >= {"over", "legal", "observe", "sluff", "result", "win"}


def test_what_plain_python_cannot_follow_is_named(
    write: Write, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(check, "MOVES", 60)
    typed = write("odd.py", changed(WAR, ("    return lowest(legal(state))", "    return lowest(legal(state) & -1)")))
    assert check.main([f"game={typed}"]) == 0  # as other commands name it
    last = capsys.readouterr().out.splitlines()[-1]
    assert last.startswith("matches plain Python        not checked: sluff (OverflowError: ")


@pytest.mark.parametrize(
    ("old", "new", "at", "says"),
    [
        ("actions=NAMES", "actions=[*NAMES[1:], NAMES[1]]", "GAME = game(", "2D appears twice"),
        ("actions=NAMES", "actions=[str(k) for k in range(65)]", "GAME = game(", "1 to 64 names, not 65; let a seat"),
        ("actions=NAMES", "actions=range(20)", "GAME = game(", "expected names, not 0"),
        ("[sluff]", "[sluff, sluff]", "GAME = game(", "sluff is the name of two; name them: policies={"),
        ("[sluff]", "{'random': sluff}", "GAME = game(", "random is always there"),
        ("total=TRICKS", "total=TRICKS, scale=-1.0", "GAME = game(", "expected a number above 0, not -1.0"),
        (
            '("turn", np.uint8)',
            '("turn", np.uint8), ("out", np.bool_, 2)',
            "GAME = game(",
            "out: Numba cannot compile an array",
        ),
        ("Layout(\n    hand=", "Layout(\n    seat=3,\n    hand=", "SEES = ", "reserved name"),
        ("sees=SEES", "sees=100", "GAME = game(", "a Layout, not int"),
        ("total=TRICKS", "total=TRICKS, teams=[[0]]", "GAME = game(", "each of the 2 seats once"),
        ('("turn", np.uint8)', '("trun", np.uint8)', "GAME = game(", "with a field `turn`"),
        ("Layout(\n    hand=", "Layout(\n    bits=3,\n    hand=", "SEES = ", "reserved name"),
        ("GAME = game(", "game(", "", "missing GAME"),
        ("total=TRICKS", "total=TRICKS, name='tressette'", "", "tressette is already the name of another game"),
        ("total=TRICKS", "total=TRICKS, name='a-b'", "", "'a-b' is not a valid name for a game"),
    ],
)
def test_what_game_refuses_says_where(write: Write, old: str, new: str, at: str, says: str) -> None:
    text = changed(WAR, (old, new))
    with error_about(InputError, f"./bad.py:{line_of(text, at)}" if at else "./bad.py", says):
        trust_game_file(write("bad.py", text))


def test_a_file_is_not_called_like_a_game(write: Write) -> None:
    typed = write("spike.py", changed(WAR))
    with error_about(InputError, typed, "spike is already the name of another game", "rename the file"):
        trust_game_file(typed)


def test_the_examples_pass() -> None:
    """The trial runs once per named file."""
    assert trust_game_file(WAR).name == "war"


def test_options_are_tried_too(write: Write) -> None:
    """The block has room for the default option only."""
    text = changed(
        WAR,
        ("import numpy as np\n", "from dataclasses import dataclass\n\nimport numpy as np\n"),
        ('("turn", np.uint8),', '("worth", np.uint8),\n    ("turn", np.uint8),'),
        ("SEES = Layout(", "@dataclass(frozen=True)\nclass Options:\n    worth: int = 1\n\n\nSEES = Layout("),
        ("own_tricks, state.taken[seat])", "own_tricks, state.worth * state.taken[seat])"),
        ("total=TRICKS,", "total=TRICKS, options=Options,"),
    )
    typed = write("bad.py", text)
    trust_game_file(typed)
    line = line_of(text, "put_thermometer(words, SEES.own_tricks")
    with error_about(OwnCodeError, f"./bad.py:{line}", "observe: 12 is written to the block `own_tricks`"):
        game_with(typed, {"worth": 12})
    assert game_with(typed, {"worth": 1}).name == "bad"
