"""Faults of a game in a file: one line with the function, found in 16 games before anything starts."""

import pytest

from busso.base.errors import InputError
from busso.base.own_files import OwnCodeError
from busso.cards.own.files import game_with, trust_game_file
from busso.evaluate import check
from tests.errors import error_about
from tests.own.conftest import Write
from tests.own.examples import WAR, changed, line_of

KIT = ("import numpy as np\n", "import numpy as np\n\nfrom busso import kit\n")
# By text of war.py, its replacement and the problem. The reported line is that of the `def`, or of the fourth text.
WRONG: dict[str, tuple[str, ...]] = {
    "an unknown block": ("put(words, SEES.hand, state.hands[seat])", "put(words, SEES.hnad, state.hands[seat])",
        "observe: cannot be compiled: Unknown attribute 'hnad' of type Layout", "SEES.hnad"),
    "an unknown field": ("state.led = card\n", "state.ledd = card\n",
        "apply: STATE has no field 'ledd'; it has turn, led, taken, hands, played, seed"),
    "an unknown global": ("state.led = card\n", "state.led = crad\n",
        "apply: cannot be compiled: NameError: name 'crad' is not defined"),
    "nothing is legal": ("return following if following else hand", "return following & ~hand",
        "legal: no action is legal in a game that is not over"),
    "legal when over": (
        "    if state.led == NONE:\n        return hand", "    if state.led == NONE:\n        return hand or bit(0)",
        "legal: an action is legal in a game that is over"),
    "an action beyond": (
        "    return following if following else hand", "    return (following if following else hand) | bit(20)",
        "legal: an action beyond 20 is legal"),
    "a bit beyond": (
        "put(words, SEES.hand, state.hands[seat])", "put(words, SEES.hand, state.hands[seat])\n    words[1] |= bit(63)",
        "observe: sets a bit beyond the 100 of the layout"),
    "a number that is too large": ("put_thermometer(words, SEES.other_tricks, state.taken[1 - seat])",
        "put_thermometer(words, SEES.other_tricks, state.taken[1 - seat] + 9)",
        "observe: 11 is written to the block `other_tricks`, which holds 0 to 10",
        "put_thermometer(words, SEES.other_tricks"),
    "a block that is too small": ("hand=CARDS,", "hand=CARDS - 1,",
        "observe: bit 19 is set in the block `hand`, which has 19", "put(words, SEES.hand"),
    "a place in no block": (
        "put(words, SEES.hand, state.hands[seat])", "put(words, SEES.hand + 100, state.hands[seat])",
        "observe: 100 is not the offset of a block of the layout", "put(words, SEES.hand"),
    "beyond an array": ("state.taken[state.turn] += 1", "state.taken[state.turn + 1] += 1",
        "apply: IndexError: index 2 is out of bounds for axis 0 with size 2", "state.taken[state.turn + 1]"),
    "beyond an array, after a call by keyword": (
        "following = hand & suit_of(state.led)", "following = hand & suit_of(card=state.led) & state.hands[2]",
        "legal: IndexError: index 2 is out of bounds for axis 0 with size 2", "suit_of(card=state.led)"),
    "beyond an array, in a deal": ("state.played[:] = 0\n", "state.played[2] = 0\n",
        "deal: IndexError: index 2 is out of bounds for axis 0 with size 2", "state.played[2]"),
    "beyond an array, in a function of the kit": (
        "    return lowest(legal(state))", "    return lowest(legal(state)) + kit.taker(state.taken, 2)",
        "sluff: IndexError: index 2 is out of bounds for axis 0 with size 2", "kit.taker("),
    "beyond an array, by an unsigned difference": (
        "state.taken[state.turn] += 1", "state.taken[seat - state.turn] += 1",
        "apply: IndexError: index is out of bounds; a difference of unsigned integers wraps: write np.int64(x)"),
    "a block that is too small, by a name in a module": (
        "put(words, SEES.hand, state.hands[seat])", "kit.put(words, SEES.hand, state.hands[seat] << np.uint64(1))",
        "observe: bit 20 is set in the block `hand`, which has 20", "kit.put(words"),
    "the result of one seat": ("out[:] = state.taken", "out[0] = state.taken[0]",
        "returns: the result of seat 1 is not set, or not a number; set out[seat] for each seat"),
    "hidden cards": ("put(words, SEES.table, bit(state.led))",
        "put(words, SEES.table, bit(state.led))\n    put(words, SEES.other_played, state.hands[1 - seat])",
        "observe: seat 1 sees in `other_played` exactly what seat 0 may play"),
    "no end": ("return state.taken[0] + state.taken[1] == TRICKS", "return state.taken[0] == TRICKS + 1",
        "legal: no action is legal in a game that is not over"),
    "over at once": ("return state.taken[0] + state.taken[1] == TRICKS", "return state.taken[0] + state.taken[1] >= 0",
        "over: the game is over as soon as it is dealt"),
    "a wrong total": ("total=TRICKS", "total=TRICKS + 1", "returns: they add up to [10.0], not to the total of 11"),
    "seats that are not there": ("total=TRICKS", "total=TRICKS, seats_taken='led'", "deal: led is 255, of 2 seats"),
    "chance of its own": ("shuffle(CARDS, seed)", "np.random.permutation(CARDS)",
        "deal: gives different results from one seed: all randomness must come from the seed"),
    "chance of its own in a move": (
        "    state.led = NONE\n\n", "    state.led = NONE\n    state.turn = np.random.randint(2)\n\n",
        "apply: gives different results from one seed"),
    "a field that is not set": ("    state.played[:] = 0\n", "", "deal: does not set played"),
    "a policy that never ends a game": ("    state.hands[seat] ^= bit(card)\n",
        "    hand = state.hands[seat]\n    if state.led == NONE and lowest(hand) == card != kit.highest(hand):\n"
        "        return\n    state.hands[seat] ^= bit(card)\n", "sluff: a game has not ended after 10,000 moves"),
    "a policy that breaks a rule": ("    return lowest(legal(state))", "    return 19 - lowest(legal(state))",
        "sluff: chooses the action "),
    "a policy that cannot be compiled": ("    return lowest(legal(state))", "    return lowest(legal(state)).nothing",
        "sluff: cannot be compiled: Unknown attribute 'nothing'", "lowest(legal(state)).nothing"),
}  # fmt: skip


@pytest.mark.parametrize("wrong", WRONG)
def test_it_is_said_with_its_function(wrong: str, write: Write) -> None:
    old, new, says, *at = WRONG[wrong]
    text = changed(WAR, KIT, (old, new))
    line = line_of(text, at[0]) if at else line_of(text, f"def {says.partition(':')[0]}(") - 1  # that of its decorator
    with error_about(OwnCodeError, f"./bad.py:{line}", says):
        trust_game_file(write("bad.py", text))


def test_a_fraction_as_a_mask_of_more_than_its_bits_is_said(write: Write) -> None:
    zero = (
        "    return following if following else hand",
        "    return 0 if state.taken[0] > TRICKS else following or hand",
    )
    assert trust_game_file(write("good.py", changed(WAR, zero))).name == "good"
    text = changed(WAR, zero, ("actions=NAMES", "actions=[*NAMES, *map(str, range(34))]"))
    with error_about(OwnCodeError, f"./bad.py:{line_of(text, 'def legal') - 1}", "legal: returns a fraction"):
        trust_game_file(write("bad.py", text))


# Correct games, which rely on the widths of arrays, or on integers that wrap.
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
    "an array of small unsigned numbers that wrap": (
        "    return lowest(legal(state))",
        "    left = state.taken - np.uint8(11)\n"
        "    return lowest(legal(state)) if left[0] > 240 else kit.highest(legal(state))",
    ),
    "a hash of 32 bits": (
        "    return lowest(legal(state))",
        "    keys = np.full(1, state.led, np.uint32) * np.uint32(2654435761)\n"
        "    return lowest(legal(state)) if keys[0] > 2**31 else kit.highest(legal(state))",
    ),
    "a function that calls itself": (
        "@njit\ndef over(state):",
        "@njit\ndef down(n):\n    if n < 1:\n        return n\n    return down(n - 1)\n\n\n"
        "@njit\ndef over(state):\n    down(state.taken.astype(np.int64)[0])",
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
def test_what_is_right_passes(right: str, write: Write) -> None:
    assert trust_game_file(write("good.py", changed(WAR, KIT, RIGHT[right]))).name == "good"


def test_check_makes_more_moves(write: Write, capsys: pytest.CaptureFixture[str]) -> None:
    cards = ("    state.played[:] = 0\n", "    state.played[:] = 0\n    state.played[2 if seed == 60 else 0] = 0\n")
    typed = write("rare.py", text := changed(WAR, cards))
    assert check.main([f"game={typed}"]) == 1  # as other commands name it
    problem = "deal: IndexError: index 2 is out of bounds for axis 0 with size 2"
    line = f"./rare.py:{line_of(text, 'state.played[2')}"
    assert capsys.readouterr().out.splitlines()[-1] == f"indices and blocks fit      {line}: {problem}"


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
