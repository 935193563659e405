"""Offsets, bits and rows of a layout, by hand; compiled code treats them as constants."""

from typing import Any

import numpy as np
import pytest

from busso.base.errors import InputError
from busso.cards.own.files import trust_game_file
from busso.evaluate.export.onnx_file import layout_of
from busso.kit import Layout, njit, number, put, put_thermometer, table_of
from tests.own.examples import WAR

SEES = Layout(hand=40, tricks=number(10), trumps=["denari", "coppe", "spade", "bastoni"], odd=12)
ACTIONS = [f"a{place}" for place in range(40)]


@njit
def written(words: Any) -> None:
    put(words, SEES.hand, np.uint64(0b101))
    put_thermometer(words, SEES.tricks, 3)
    put(words, SEES.trumps, np.uint64(0b0100))
    put(words, SEES.odd, np.uint64(0b1000_0000_0001))


def test_compiled_code_writes_what_the_blocks_read() -> None:
    words = np.zeros(2, np.uint64)
    written(words)
    assert SEES.bits == 66 and tuple(SEES) == (0, 40, 50, 54)
    assert [int(word) for word in words] == [0b101 | 0b111 << 40 | 1 << 52 | 1 << 54, 0b10]  # bit 65 is the 12th of odd
    assert [block.value(words) for block in SEES.blocks] == [[0, 2], 3, [2], [0, 11]]


def test_a_block_is_shown_by_what_it_holds() -> None:
    words = np.zeros(2, np.uint64)
    written(words)
    texts = [block.texts(words, ACTIONS) for block in SEES.blocks]
    assert texts == [("a0", "a2"), ("3",), ("spade",), ("10000000", "0001")]
    assert SEES.blocks[0].texts(np.zeros(2, np.uint64), ACTIONS) == ("-",)


def test_the_table_of_a_page() -> None:
    assert table_of(SEES, ACTIONS).splitlines() == [
        "| bits | block | holds |",
        "|---|---|---|",
        "| 0-39 | hand | actions |",
        "| 40-49 | tricks | 0 to 10, thermometer |",
        "| 50-53 | trumps | one of denari, coppe, spade, bastoni |",
        "| 54-65 | odd | 12 bits |",
    ]


@pytest.mark.parametrize(
    ("blocks", "key"),
    [
        ({"bits": 3}, "Layout: bits"),
        ({"count": 3}, "Layout: count"),
        ({"_x": 3}, "Layout: _x"),
        ({"class": 3}, "Layout: class"),
        ({"hand": 0}, "Layout: hand"),
        ({"hand": True}, "Layout: hand"),
        ({"hand": "spade"}, "Layout: hand"),
        ({"hand": []}, "Layout: hand"),
        ({}, "Layout"),
    ],
)
def test_what_is_no_block(blocks: dict[str, Any], key: str) -> None:
    with pytest.raises(InputError) as caught:
        Layout(**blocks)
    assert caught.value.key == key
    for most in (0, 64):
        with pytest.raises(InputError):
            number(most)


def test_an_exported_network_is_explained_by_the_table_of_the_layout() -> None:
    said = layout_of(trust_game_file(WAR))
    assert said.splitlines()[0] == "| bits | block | holds |" and "| 20-39 | table | actions |" in said
