import pytest
from hypothesis import given as drawn
from hypothesis import strategies as st

from busso.command.settings.quoting import Override, given, in_full, key_of, parsed


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


@drawn(st.text())
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
    assert {key: each.value for key, each in given(["seed=1", "name=a", "+seed=2"]).items()} == {
        "seed": "2",
        "name": "a",
    }
