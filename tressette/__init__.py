"""Tressette: four seats, two teams, tricks."""

from cards.game import Game
from tressette.cards import CARDS, card_text
from tressette.observation import BITS
from tressette.players import POLICIES
from tressette.records import record, replay
from tressette.rewards import REWARDS
from tressette.rules import POINTS, RULES, SEATS, Options, blank

GAME = Game(
    name="tressette",
    blank_for=blank,
    options=Options(),
    rules=RULES,
    seats=SEATS,
    teams=((0, 2), (1, 3)),
    actions=CARDS,
    bits=BITS,
    unit="points",
    total=2.0 * POINTS,
    rewards=REWARDS,
    policies=POLICIES,
    action_text=card_text,
    replay=replay,
    record=record,
)
