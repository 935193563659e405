"""Rules of Blackjack, and how it is learned, as a person types them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from command.game import load_configured_game
from command.settings.checks import SettingsError, check_range
from play.blackjack_lab.lessons import Choices

RULES = ("discount", "decks", "soft_17", "ties")
_POLICY = "hit_below_"
LEAST_LIMIT, MOST_LIMIT = 4, 21


@dataclass(frozen=True)
class Adjusted:
    """The group `game`, and how it is to be learned."""

    settings: dict[str, Any]
    choices: Choices

    def new_rules(self, settings: Mapping[str, Any]) -> bool:
        """Whether the table, and all learning, has to begin anew."""
        return any(self.settings[key] != settings[key] for key in RULES)


def typed(settings: Mapping[str, Any], choices: Choices) -> dict[str, str]:
    """What is adjustable as text: the rules, `epsilon`, and `limit`, below which MC and TD's policy hits."""
    rules = {key: str(settings[key]) for key in RULES}
    return {"epsilon": str(choices.epsilon), "limit": choices.policy.removeprefix(_POLICY), **rules}


def adjusted(settings: Mapping[str, Any], choices: Choices, texts: Mapping[str, str]) -> Adjusted:
    """What these texts, by the keys of `typed`, mean. Raises SettingsError that names the key."""
    epsilon = _number("epsilon", texts["epsilon"])
    if not texts["limit"].strip().isdecimal() or not LEAST_LIMIT <= int(texts["limit"]) <= MOST_LIMIT:
        raise SettingsError("limit", f"{LEAST_LIMIT} to {MOST_LIMIT}, not {texts['limit']}")
    chosen = replace(choices, epsilon=epsilon, policy=f"{_POLICY}{int(texts['limit'])}")
    check_range("epsilon", epsilon, 0, 1)
    decks = texts["decks"].strip()
    rules = {
        "discount": _number("discount", texts["discount"]),
        "decks": int(decks) if decks.isdecimal() else decks,
        "soft_17": texts["soft_17"],
        "ties": texts["ties"],
    }
    wanted = {**settings, **rules}
    load_configured_game(wanted)  # says what is wrong with it
    return Adjusted(wanted, chosen)


def _number(key: str, text: str) -> float:
    try:
        return float(text.strip().replace(",", "."))
    except ValueError:
        raise SettingsError(key, f"a number from 0 to 1, not {text.strip() or 'nothing'}") from None
