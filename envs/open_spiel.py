"""Tressette for OpenSpiel: `import busso.envs.open_spiel`, then `pyspiel.load_game("python_busso_tressette")`.

The deal is 40 chance nodes, ten cards for each seat in turn, and one for who leads, unless the four of denari does.
Returns are the points of the own team less those of the other. The observation is that of `tressette/observation.py`;
there is no information state, for what a seat sees does not keep the order of the cards. It needs the extra
`openspiel`. The games are those of the engine, but for their seeds: here OpenSpiel draws the cards.
"""

from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np
import pyspiel

from busso.cards.compiled.bits import bit, unpack
from busso.cards.game import Game, game_with
from busso.tressette.cards import CARDS, card_text
from busso.tressette.rules import POINTS, SEATS, TRICKS, begin

_TYPE = pyspiel.GameType(
    short_name="python_busso_tressette",
    long_name="Tressette, one hand",
    dynamics=pyspiel.GameType.Dynamics.SEQUENTIAL,
    chance_mode=pyspiel.GameType.ChanceMode.EXPLICIT_STOCHASTIC,
    information=pyspiel.GameType.Information.IMPERFECT_INFORMATION,
    utility=pyspiel.GameType.Utility.ZERO_SUM,
    reward_model=pyspiel.GameType.RewardModel.TERMINAL,
    max_num_players=SEATS,
    min_num_players=SEATS,
    provides_information_state_string=False,
    provides_information_state_tensor=False,
    provides_observation_string=True,
    provides_observation_tensor=True,
    parameter_specification={"signals": False, "accusi": False, "first_leader": "random"},
)
# Actions, chance outcomes, players, least and greatest utility, their sum, longest game.
_INFO = pyspiel.GameInfo(CARDS, CARDS, SEATS, -POINTS, POINTS, 0.0, CARDS)


@cache
def _rules(options: tuple[tuple[str, Any], ...]) -> Game:
    return game_with("tressette", dict(options))


class TressetteGame(pyspiel.Game):
    """The game with the options of `busso.tressette.rules.Options`; ValueError for a bad one."""

    def __init__(self, params: Mapping[str, Any] | None = None) -> None:
        given = dict(params or {})
        self.options = tuple(sorted({**_TYPE.parameter_specification, **given}.items()))
        _ = _rules(self.options)
        super().__init__(_TYPE, _INFO, given)

    def new_initial_state(self) -> "TressetteState":
        """Before the deal."""
        return TressetteState(self)

    def make_py_observer(self, iig_obs_type: Any = None, params: Any = None) -> "TressetteObserver":
        """What a seat may know."""
        if iig_obs_type is not None and iig_obs_type.perfect_recall:
            raise ValueError("python_busso_tressette has observations, but no information states")
        return TressetteObserver(_rules(self.options).bits)


class TressetteState(pyspiel.State):
    """A hand: dealt card by card, then played by the engine. It is copied often: the rules are not in it."""

    def __init__(self, game: TressetteGame) -> None:
        super().__init__(game)
        self.options = game.options
        self.state = np.full(1, _rules(self.options).blank)
        self.dealt: list[int] = []
        self.begun = False

    def current_player(self) -> int:
        """The seat to move, or chance."""
        if not self.begun:
            return int(pyspiel.PlayerId.CHANCE)
        return int(pyspiel.PlayerId.TERMINAL if self.is_terminal() else self.state["turn"][0])

    def _legal_actions(self, player: int) -> list[int]:
        mask = int(_rules(self.options).legal(self.state)[0])
        return [card for card in range(CARDS) if mask >> card & 1]

    def chance_outcomes(self) -> list[tuple[int, float]]:
        """The cards that are left, or the four seats."""
        left = [card for card in range(CARDS) if card not in self.dealt] or list(range(SEATS))
        return [(outcome, 1 / len(left)) for outcome in left]

    def _apply_action(self, action: int) -> None:
        if self.begun:
            _rules(self.options).apply(self.state, np.array([action], np.uint8))
        elif len(self.dealt) < CARDS:
            self.state["hands"][0, len(self.dealt) // TRICKS] |= bit(action)
            self.dealt.append(action)
            if len(self.dealt) == CARDS and dict(self.options)["first_leader"] == "four_of_denari":
                self._begin(self.dealt.index(0) // TRICKS)
        else:
            self._begin(action)

    def _begin(self, leader: int) -> None:
        begin(self.state[0], leader)
        self.begun = True

    def _action_to_string(self, player: int, action: int) -> str:
        if player == pyspiel.PlayerId.CHANCE and len(self.dealt) == CARDS and not self.begun:
            return f"seat {action} leads"
        return card_text(action)

    def is_terminal(self) -> bool:
        """Whether all cards are played."""
        return self.begun and bool(_rules(self.options).over(self.state)[0])

    def returns(self) -> list[float]:
        """The difference of points for each seat; zeros until the end."""
        if not self.is_terminal():
            return [0.0] * SEATS
        points = _rules(self.options).returns(self.state)[0]
        return [float(points[seat] - points[(seat + 1) % SEATS]) for seat in range(SEATS)]

    def __str__(self) -> str:
        return " ".join(map(card_text, [*self.dealt, *self.state["order"][0][: int(self.state["plays"][0])]]))


class TressetteObserver:
    """Bits of 0 and 1 as float32; before a hand has begun all of them are 0."""

    def __init__(self, bits: int) -> None:
        self.tensor = np.zeros(bits, np.float32)
        self.dict = {"observation": self.tensor}

    def set_from(self, state: TressetteState, player: int) -> None:
        """Write what `player` sees into `tensor`."""
        self.tensor[:] = 0
        if state.begun:
            words = _rules(state.options).observe(state.state, seats=np.array([player], np.uint8))
            unpack(words, self.tensor.size, self.tensor[None])

    def string_from(self, state: TressetteState, player: int) -> str:
        """The same bits as text."""
        self.set_from(state, player)
        return f"{player}:{np.packbits(self.tensor.astype(np.uint8)).tobytes().hex()}"


pyspiel.register_game(_TYPE, TressetteGame)
