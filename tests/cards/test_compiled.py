"""Compiled code: hits of its cache for the same code only, packed bits, random streams, and loops in threads."""

import importlib
import itertools
import json
import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import FunctionType
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numba.core.dispatcher import Dispatcher
from numpy.typing import NDArray

from busso.cards.compiled import jit as code_store
from busso.cards.compiled import jit as compiled
from busso.cards.compiled.batch import first_illegal, policy_loop, reward_loop
from busso.cards.compiled.bits import (
    bit,
    has,
    highest,
    lowest,
    nth_bit,
    popcount,
    put,
    put_thermometer,
    unpack,
    words_for,
)
from busso.cards.compiled.jit import fingerprint, njit
from busso.cards.compiled.splitmix import below, below_wide, derive, stream, uniform
from busso.cards.game import load_game
from busso.cards.play import play
from busso.cards.players import RandomPlayer
from busso.command.conf_folder import own_games
from busso.train.network import deviations, packed_linear
from busso.train.network import q_network as network
from busso.train.rollout import transitions
from busso.tressette import GAME as TRESSETTE

ROOT = Path(__file__).parents[2]
LAST = """
import json
from busso.cards.compiled import jit as compiled
print(json.dumps({"answer": answer, "loaded": sum(compiled.loaded.values()), "made": sum(compiled.made.values())}))
"""


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


def run(script: str, cache: Path, folder: Path = ROOT, **environment: str) -> dict[str, Any]:
    """Compute `answer` in a new process; return it with the numbers of functions loaded and compiled."""
    paths = os.pathsep.join((str(folder), str(ROOT)))
    # Python's own cache confuses two versions of a file that have the same size and modification second.
    own = {"BUSSO_CACHE": str(cache), "PYTHONPATH": paths, "PYTHONDONTWRITEBYTECODE": "1"}
    environment = os.environ | own | environment
    done = subprocess.run(
        [sys.executable, "-c", script + LAST], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


GAME = """
import numpy as np
from busso.cards.play import play
from busso.cards.players import PolicyPlayer
from busso.sette_mezzo import GAME
seeds = np.arange(20, dtype=np.uint64)
players = [PolicyPlayer(policy) for policy in list(GAME.policies.values())[:1]]
_, totals = play(GAME, seeds, players, np.zeros((20, 1), np.uint8), next(iter(GAME.rewards.values())))
answer = totals.sum(axis=0).tolist()
"""


def test_a_second_process_compiles_nothing(cache: Path) -> None:
    first, second = run(GAME, cache), run(GAME, cache)
    assert first["made"] > 10 and first["loaded"] == 0
    assert second["made"] == 0 and second["loaded"] > 5
    assert first["answer"] == second["answer"]


@pytest.fixture
def rules(tmp_path: Path) -> Path:
    """Write three files, each of which calls a function of the one before."""
    folder = tmp_path / "package"
    folder.mkdir()
    (folder / "rule.py").write_text(
        "from busso.cards.compiled.jit import njit\n@njit\ndef worth(card):\n    return card + 1\n"
    )
    (folder / "trick.py").write_text(
        "from busso.cards.compiled.jit import njit\nfrom rule import worth\n"
        "@njit\ndef total(n):\n    return worth(n) * 10\n"
    )
    (folder / "table.py").write_text(
        "from busso.cards.compiled.jit import njit\nfrom trick import total\nBONUS = 5\n@njit\ndef play(n):\n"
        "    return total(n) + BONUS\n"
    )
    return folder


PLAY = "from table import play\nanswer = int(play(1))\n"


def test_a_changed_line_of_any_file_is_compiled(cache: Path, rules: Path, tmp_path: Path) -> None:
    """Older entries stay valid; comments and locations of files do not matter."""
    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(lambda _: run(PLAY, cache, rules)["answer"], range(2))) == [25] * 2
    assert not [path for path in cache.glob("*/*") if path.suffix != ".code"]
    for file, old, new, answer in (("rule.py", "card + 1", "card + 2", 35), ("table.py", "BONUS = 5", "BONUS = 6", 26)):
        text = (rules / file).read_text()
        assert old in text
        (rules / file).write_text(text.replace(old, new))
        changed = run(PLAY, cache, rules)
        assert changed["answer"] == answer and changed["made"] > 0
        (rules / file).write_text(f"# a comment\n\n{text}")
    rules.rename(tmp_path / "elsewhere")
    assert run(PLAY, cache, tmp_path / "elsewhere") == {"answer": 25, "loaded": 1, "made": 0}


CLOSURES = """
import sys
from busso.cards.compiled.jit import njit
def adder(n):
    @njit
    def add(x):
        return x + n
    return add
def both(one, other):
    @njit
    def each(x):
        return one(x), other(x)
    return each
"""


def test_closures_that_two_processes_kept_are_told_apart(cache: Path, tmp_path: Path) -> None:
    """Numba's own numbering gives both the same symbol, and linking both would call one of them twice."""
    (tmp_path / "adders.py").write_text(CLOSURES)
    for n in (1, 2):
        assert run(f"from adders import adder\nanswer = adder({n})(0)\n", cache, tmp_path)["answer"] == n
    both = "from adders import adder, both\nanswer = both(adder(1), adder(2))(10)\n"
    assert run(both, cache, tmp_path) == {"answer": [11, 12], "loaded": 2, "made": 1}


CHECKED = """
import numpy as np
from items import item
from busso.cards.compiled.jit import Rebuilt, with_checked_indices
called = Rebuilt(with_checked_indices, ("items",)).of(item) if {checked} else item
try:
    answer = int(called(np.arange(3)[:2], 2))
except IndexError as error:
    answer = str(error)
"""


def test_code_with_checked_indices_is_kept_apart(cache: Path, tmp_path: Path) -> None:
    (tmp_path / "items.py").write_text(
        "from busso.cards.compiled.jit import njit\n@njit\ndef one(array, k):\n    return array[k]\n"
        "@njit\ndef item(array, k):\n    return one(array, k)\n"
    )
    for checked, answer in ((False, 2), (True, "index is out of bounds")):
        made = run(CHECKED.format(checked=checked), cache, tmp_path)
        assert made == {"answer": answer, "loaded": 0, "made": 2}
        assert run(CHECKED.format(checked=checked), cache, tmp_path) == {"answer": answer, "loaded": 1, "made": 0}


@njit
def twice(x: Any) -> Any:
    return x + x


@pytest.fixture
def kept(cache: Path, monkeypatch: pytest.MonkeyPatch) -> code_store.CodeStore:
    """Keep this process's code in a folder of the test."""
    store = code_store.CodeStore(cache, "v")
    monkeypatch.setattr(compiled, "store", lambda: store)
    return store


def again(function: Any) -> Any:
    """Return the same function, as seen by a process that has not called it yet."""
    return njit(function.py_func)


def made_again() -> int:
    """Return the number of compilations of `twice` for one call."""
    before = compiled.made["tests.cards.test_compiled.twice"]
    assert again(twice)(21) == 42
    return compiled.made["tests.cards.test_compiled.twice"] - before


def test_what_is_damaged_is_compiled_again(kept: code_store.CodeStore) -> None:
    assert (made_again(), made_again()) == (1, 0)
    (file,) = kept.folder.glob("*/*.code")
    whole = file.read_bytes()
    for damaged in (b"", whole[:-1], whole[:200], whole[:50] + b"?" + whole[51:]):
        file.write_bytes(damaged)
        assert made_again() == 1
        assert file.read_bytes()[32:52] == whole[32:52]  # repaired
        assert made_again() == 0


def test_a_folder_that_cannot_be_written_costs_time_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").touch()
    store = code_store.CodeStore(tmp_path / "file" / "cache", "v")
    monkeypatch.setattr(compiled, "store", lambda: store)
    with caplog.at_level("INFO"):
        assert (made_again(), made_again()) == (1, 1)
    assert store.problem is not None and str(tmp_path) in store.problem


def test_a_full_disk_costs_time_alone(
    kept: code_store.CodeStore, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def full(path: Path, data: bytes) -> int:
        with path.open("wb") as file:
            file.write(data[:10])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with caplog.at_level("INFO"):
        assert (made_again(), made_again()) == (1, 1)
    assert len(caplog.messages) == 1 and "No space left" in caplog.messages[0]
    assert not list(kept.folder.glob("*/*"))


def test_a_folder_that_others_may_write_is_refused(cache: Path) -> None:
    cache.mkdir()
    cache.chmod(0o777)
    store = code_store.CodeStore(cache, "v")
    assert store.problem is not None and f"chmod 700 {cache}" in store.problem
    cache.chmod(0o700)
    store = code_store.CodeStore(cache, "v")
    assert store.problem is None
    assert (cache / "v").stat().st_mode & 0o777 == 0o700


def test_where_the_folder_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("BUSSO_CACHE", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert code_store.default_folder() == tmp_path / ".cache" / "busso"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert code_store.default_folder() == tmp_path / "xdg" / "busso"
    monkeypatch.setenv("BUSSO_CACHE", str(tmp_path / "mine"))
    assert code_store.default_folder() == tmp_path / "mine"


def test_a_folder_that_grew_too_large_is_emptied(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    new, old = "0" * 64, "f" * 64
    (cache / "photos").mkdir(parents=True, mode=0o700)
    (cache / "photos" / "theirs").touch()  # BUSSO_CACHE may be a folder with unrelated files
    cache.chmod(0o700)
    for largest, left in ((200, [new, old, "theirs"]), (100, [new, "theirs"])):
        code_store.CodeStore(cache, "before").write(old, bytes(100))
        monkeypatch.setattr(code_store, "LARGEST", largest)
        code_store.CodeStore(cache, "v").write(new, b"")
        assert sorted(path.stem for path in cache.glob("*/*")) == left


def _modules() -> list[str]:
    packages = ("cards", *own_games(), "train", "evaluate", "envs")
    files = itertools.chain.from_iterable((ROOT / package).rglob("*.py") for package in packages)
    text = "from busso.cards.compiled.jit import"
    return [
        "busso." + ".".join(file.relative_to(ROOT).with_suffix("").parts) for file in files if text in file.read_text()
    ]


@pytest.mark.parametrize("module", _modules())
def test_everything_compiled_can_be_kept(module: str) -> None:
    for value in vars(importlib.import_module(module)).values():
        if isinstance(value, Dispatcher):
            assert len(fingerprint(value.py_func, compiled.unwrap)) == 64
            assert isinstance(value._cache, compiled._Kept)


def _with(value: Any) -> FunctionType:
    def names() -> Any:
        return value

    return names


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (1, 2),
        (1, True),
        (1, 1.0),
        (np.uint8(1), np.uint64(1)),
        (np.arange(3), np.arange(4)),
        (np.zeros((2, 3)), np.zeros((3, 2))),
        (np.zeros((2, 3)), np.zeros((2, 3)).T.copy().T),
        ((1, (2, 3)), (1, 2, 3)),
        (np.dtype([("a", "u1")]), np.dtype([("a", "u1")], align=True).newbyteorder(">")),
        (np.sum, np.prod),
        ("a", b"a"),
    ],
)
def test_different_values_have_different_fingerprints(one: Any, other: Any) -> None:
    assert fingerprint(_with(one), compiled.unwrap) != fingerprint(_with(other), compiled.unwrap)
    assert fingerprint(_with(one), compiled.unwrap) == fingerprint(_with(one), compiled.unwrap)


WORDS = st.one_of(st.integers(0, 2**64 - 1), st.sampled_from([0, 1, 2**63, 2**64 - 1]))
INDICES = st.integers(0, 63)


def as_integer(words: NDArray[np.uint64]) -> int:
    return sum(int(word) << 64 * k for k, word in enumerate(words))


@given(WORDS, INDICES)
def test_bits_of_a_word(word: int, index: int) -> None:
    bits = [k for k in range(64) if word >> k & 1]
    assert popcount(np.uint64(word)) == len(bits)
    assert lowest(np.uint64(word)) == (bits[0] if bits else 64)
    assert highest(np.uint64(word)) == (bits[-1] if bits else -1)
    assert [nth_bit(np.uint64(word), n) for n in range(66)] == (bits + [64] * 66)[:66]
    assert int(bit(index)) == 1 << index
    assert bool(has(np.uint64(word), index)) == bool(word >> index & 1)


@given(WORDS, st.integers(0, 127), st.integers(0, 2**128 - 1))
def test_put_keeps_what_is_there_and_straddles_words(value: int, offset: int, before: int) -> None:
    words = np.array([before & 2**64 - 1, before >> 64], np.uint64)
    put(words, offset, np.uint64(value))
    assert as_integer(words) == before | (value << offset) % 2**128


@given(st.integers(0, 63), st.integers(0, 64))
def test_thermometer(value: int, offset: int) -> None:
    words = np.zeros(2, np.uint64)
    put_thermometer(words, offset, value)
    assert unpack(words[None], 128)[0].tolist() == [float(offset <= k < offset + value) for k in range(128)]


@st.composite
def packed(draw: st.DrawFn) -> tuple[NDArray[np.uint64], int]:
    """Draw rows of words and the number of bits in use."""
    rows, columns = draw(st.integers(0, 5)), draw(st.integers(1, 4))
    words = draw(st.lists(WORDS, min_size=rows * columns, max_size=rows * columns))
    bits = draw(st.integers(1, 64 * columns))
    return np.array(words, np.uint64).reshape(rows, columns), bits


@given(packed())
def test_unpack(rows: tuple[NDArray[np.uint64], int]) -> None:
    words, bits = rows
    ones = unpack(words, bits)
    assert ones.dtype == np.float32 and ones.shape == (len(words), bits)
    assert ones.tolist() == [[as_integer(row) >> k & 1 for k in range(bits)] for row in words]


@pytest.mark.parametrize("shape, bits", [((2, 1), 65), ((2, 2), 0), ((2, 2), -1), ((4,), 10)])
def test_unpack_refuses_bits_that_do_not_fit(shape: tuple[int, ...], bits: int) -> None:
    with pytest.raises(ValueError, match="do not fit"):
        unpack(np.zeros(shape, np.uint64), bits)


@pytest.mark.parametrize("bits, words", [(1, 1), (64, 1), (65, 2), (128, 2), (462, 8)])
def test_words_for(bits: int, words: int) -> None:
    assert words_for(bits) == words


SEEDS = st.integers(0, 2**64 - 1)
# First outputs for the seed 1234567, as in the test suites of several implementations (Rosetta Code, "Pseudo-random
# numbers/Splitmix64").
PUBLISHED = [
    6457827717110365317,
    3203168211198807973,
    9817491932198370423,
    4593380528125082431,
    16408922859458223821,
]


def test_published_numbers() -> None:
    # A stream without a name starts at the seed.
    assert stream(1234567, "", 0, 5).tolist() == PUBLISHED


@given(SEEDS, st.integers(0, 2**40), st.integers(0, 20), st.integers(0, 20))
def test_a_stream_is_the_same_however_it_is_cut(seed: int, first: int, left: int, right: int) -> None:
    whole = stream(seed, "episodes", first, left + right)
    parts = [stream(seed, "episodes", first, left), stream(seed, "episodes", first + left, right)]
    assert np.array_equal(whole, np.concatenate(parts))


def test_streams_of_other_names_and_seeds_share_nothing() -> None:
    streams = [stream(seed, name, 0, 1000) for seed in (1, 2, -1) for name in ("episodes", "evaluation", "")]
    assert np.unique(np.concatenate(streams)).size == 9_000


@given(SEEDS, st.integers(1, 2**32 - 1))
def test_below(bits: int, n: int) -> None:
    number = int(below(np.uint64(bits), n))
    assert 0 <= number < n
    assert number == (bits >> 32) * n >> 32


@given(SEEDS, st.integers(1, 2**64 - 1))
def test_below_wide(bits: int, n: int) -> None:
    assert int(below_wide(np.uint64(bits), np.uint64(n))) == bits * n >> 64


@given(SEEDS)
def test_uniform(bits: int) -> None:
    assert uniform(np.uint64(bits)) == (bits >> 11) / 2**53
    assert 0 <= uniform(np.uint64(bits)) < 1


@pytest.mark.parametrize("size", [0, 1, 3])
def test_derive_depends_on_seed_and_salt_alone(size: int) -> None:
    seeds = stream(3, "games", 0, size)
    assert derive(seeds, 1).tolist() == [int(derive(seeds[k : k + 1], 1)[0]) for k in range(size)]
    assert not np.any(derive(seeds, 1) == derive(seeds, 2))


def test_loops_on_the_way_of_a_decision_give_pythons_lock_back() -> None:
    (policy, *_), (reward, *_) = TRESSETTE.policies.values(), TRESSETTE.rewards.values()
    loops: list[Any] = [
        *TRESSETTE.loops,
        first_illegal,
        policy_loop(policy),
        reward_loop(TRESSETTE.rules.apply, reward),
    ]
    loops += [network.choose, network.fill_forced_moves, packed_linear._sums, packed_linear._add]
    loops += [deviations._split, deviations._join]
    loops += [transitions.next_decisions, transitions.n_step_returns]
    assert not [loop.py_func.__name__ for loop in loops if not loop.targetoptions.get("nogil")]


def test_a_game_that_is_not_there_is_named_in_any_thread() -> None:
    states, caught = TRESSETTE.deal(stream(1, "x", 0, 4)), []

    def look(game: int) -> None:
        for _ in range(50):
            with pytest.raises(ValueError, match="no such game") as error:
                TRESSETTE.legal(states, np.array([0, game]))
            caught.append(error)

    threads = [threading.Thread(target=look, args=(game,)) for game in (4, -1, 99)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(caught) == 150


@pytest.mark.parametrize("name", ["tressette", "blackjack"])
def test_games_in_threads_are_those_of_one_thread(name: str) -> None:
    game, found = load_game(name), {}

    def random_games(part: int) -> None:
        seeds = stream(part, "threads", 0, 500)
        found[part], _ = play(game, seeds, [RandomPlayer()], np.zeros((500, game.seats), np.uint8))

    random_games(0)
    alone = found.pop(0)
    threads = [threading.Thread(target=random_games, args=(part,)) for part in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (found[0] == alone).all()  # compared by field: padding bytes are undefined
    assert not any((found[part] == alone).all() for part in (1, 2, 3))
