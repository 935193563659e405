"""Cache of compiled code: hits for the same code, never for other code."""

import importlib
import itertools
import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import FunctionType
from typing import Any

import numpy as np
import pytest
from numba.core.dispatcher import Dispatcher

from busso.cards.compiled import jit as code_store
from busso.cards.compiled import jit as compiled
from busso.cards.compiled.jit import fingerprint, njit
from busso.command.conf_folder import own_games

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
