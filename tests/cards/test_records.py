from pathlib import Path

import pytest

from busso.base.errors import InputError
from busso.cards.records import integer, list_of, read_records
from tests.errors import error_about


def read_one(tmp_path: Path, line: bytes) -> object:
    path = tmp_path / "records.jsonl"
    path.write_bytes(line)
    [(number, record)] = read_records(path)
    assert number == 1
    return record


@pytest.mark.parametrize(
    "line, message",
    [
        (b"{", "not JSON: "),
        (b"nonsense", "not JSON: "),
        (b"{} {}", "not JSON: "),
        (b"\xff\xfe{}", "not JSON: "),
        (b'{"a": NaN}', "not JSON: NaN is not a number"),
        (b'{"a": [-Infinity]}', "not JSON: -Infinity is not a number"),
        (b'{"a": 1, "a": 2}', "not JSON: duplicate field"),
        (b'{"a": ' + b"9" * 5000 + b"}", "not JSON: "),
        (b"[" * 100_000, "not JSON: "),
        (b"[]", "not a JSON object"),
        (b"null", "not a JSON object"),
        (b'"{}"', "not a JSON object"),
    ],
)
def test_bad_lines(tmp_path: Path, line: bytes, message: str) -> None:
    error = read_one(tmp_path, line)
    assert isinstance(error, ValueError)
    assert str(error).startswith(message)


def test_lines_are_numbered_from_one_and_blank_ones_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "records.jsonl"
    path.write_bytes(b'\xef\xbb\xbf{"a":1}\r\n\n   \n{"b":"\xc3\xa8"}')
    assert list(read_records(path)) == [(1, {"a": 1}), (4, {"b": "è"})]


def test_a_missing_file_is_an_os_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        list(read_records(tmp_path / "nothing"))


@pytest.mark.parametrize("value", [True, False, 1.0, "1", None, [1], -1, 4, 10**30])
def test_not_an_integer_within_bounds(value: object) -> None:
    with error_about(InputError, "leader"):
        integer({"leader": value}, "leader", 0, 3)
    assert [integer({"leader": good}, "leader", 0, 3) for good in (0, 3)] == [0, 3]
    with error_about(InputError, "leader", "missing"):
        integer({}, "leader", 0, 3)


def test_lists() -> None:
    assert list_of([1, 2], "hands", 2) == [1, 2]
    assert list_of([1, 2], "hands", None) == [1, 2]
    with error_about(InputError, "hands"):
        list_of({"0": 1}, "hands", None)
    with error_about(InputError, "hands", "2 entries"):
        list_of([1, 2], "hands", 3)
