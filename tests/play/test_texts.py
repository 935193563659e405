"""Texts: every one in every language, with the same placeholders, and all used."""

from string import Formatter

import pytest

from busso.cards.game import load_game
from busso.command.conf_folder import own_games
from busso.play.language import LANGUAGES, Language, message, texts_of
from busso.play.plain import WORDS

ENGLISH = texts_of("en")
CARDS = 40  # games with this many actions play cards, whose names do not depend on the language


def places(text: str) -> set[str]:
    return {name for _, name, _, _ in Formatter().parse(text) if name is not None}


@pytest.mark.parametrize("name", LANGUAGES)
def test_every_language_has_every_text_with_its_places(name: str) -> None:
    texts = texts_of(name)
    assert list(texts) == list(ENGLISH)
    assert {key: places(text) for key, text in texts.items()} == {key: places(text) for key, text in ENGLISH.items()}
    assert all(text.strip() and "\n" not in text for text in texts.values())


def test_every_word_has_a_name_and_a_help() -> None:
    for group in ("word", "help"):
        assert {f"{group}.{word}" for word in WORDS} == {key for key in ENGLISH if key.startswith(f"{group}.")}


@pytest.mark.parametrize("name", LANGUAGES)
def test_words_and_actions_can_be_told_apart(name: str) -> None:
    language = Language(name)
    words = {language.say(f"word.{word}") for word in WORDS} | set(WORDS)
    assert len({language.say(f"word.{word}") for word in WORDS}) == len(WORDS)
    for game in map(load_game, own_games()):
        texts = [game.action_text(action) for action in range(game.actions)]
        called = [language.action(game.name, text) for text in texts]
        assert len(set(called)) == game.actions and not words & set(called + texts)


def test_every_action_with_a_name_has_one_in_every_language() -> None:
    for game in map(load_game, own_games()):
        for action in range(game.actions if game.actions < CARDS else 0):
            assert f"action.{game.name}.{game.action_text(action)}" in ENGLISH


def test_a_message_in_a_message_is_said_in_the_same_language() -> None:
    told = message("event.wins", seat=2, rule=message("rule.lot"))
    assert Language("en").render(told) == "Seat 2 wins the pool: a complete tie, by lot."
    assert Language("it").render(told) == "Il posto 2 vince il piatto: del tutto pari, a sorte."
    declared = message("event.declares", seat=1, accusi=(message("accuso.four", rank="A"), "x"))
    assert Language("en").render(declared) == "Seat 1 declares: four A, x."
