"""Gymnasium vector environment of batches of games: one learner against players of busso."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from busso.base import own_files
from busso.base.bounds import whole
from busso.base.errors import InputError
from busso.cards.compiled.batch import reward_loop
from busso.cards.compiled.bits import unpack
from busso.cards.compiled.splitmix import derive
from busso.cards.game import Game, Games
from busso.cards.own.files import game_with
from busso.cards.own.players import player_from
from busso.cards.play import Decisions, Player, decide
from busso.cards.players import named_player
from busso.envs.choosing import SEEDS, check_seed, reward_of
from busso.envs.stepping import later_seeds, settle_loop

Observations = dict[str, NDArray[np.int8]]
Learner = int | Sequence[int] | None
Others = str | Player | Mapping[int, str | Player]
_MAX_ENVS = 2**31 - 1
Step = tuple[Observations, NDArray[np.float32], NDArray[np.bool_], NDArray[np.bool_], dict[str, Any]]


class SeatsVectorEnv(VectorEnv[Observations, NDArray[np.int64], NDArray[Any]]):
    """`num_envs` games in which the learner plays seats of one team, and players of busso the others.

    A step is one decision of the learner in every game; then the others play until the learner is to move again.

    - Observations are `{"observation": [num_envs, bits], "action_mask": [num_envs, actions]}`, int8 of 0 and 1, of the
      seat to move, `info["seat"]` (`[num_envs]`); `info` has the mask as well. A learner with several seats that
      bootstraps must join decisions of the same seat, since each sees different cards.
    - Rewards are the mean over the learner's seats of what they earned since its last step; `info["rewards"]`
      (`[num_envs, seats]`) has those of every seat.
    - Autoreset is SAME_STEP: when a game ends, `terminations` is true, the observation is the first of the next game,
      and `info["final_obs"][k]` the final one of the seat that moved last; `info["returns"]` (`[num_envs, seats]`) has
      the results in the game's unit where `info["_returns"]` is true. Games are never truncated. With
      `autoreset_mode="Disabled"` a finished game stays until `reset(options={"reset_mask": finished})`.
    - `reset(seed=s)`: environment k plays the game of seed s + k, or of `s[k]`, and the games that follow from it, as
      in the other environments; where `s[k]` is None its next game follows. It also reseeds the players.
    - A game that ends before the learner's first decision ends with the next step, whatever the action.

    `learner` is a seat or seats of one team, by default the team of seat 0. `others` is one player for all other seats,
    or a mapping from seat to player: a name, with options as in "monte_carlo:samples:20", or a
    `busso.cards.play.Player` not used by another environment. `step` raises ValueError, and plays nothing, if an action
    is illegal; with `strict=False` the next legal action replaces it, as in `SoloEnv`, and `info["played"]`
    (`[num_envs]`) has the actions that were played. Returned arrays are copies.
    """

    metadata: dict[str, Any] = {"render_modes": [], "autoreset_mode": AutoresetMode.SAME_STEP}  # noqa: RUF012

    def __init__(
        self,
        game: str,
        num_envs: int = 1,
        learner: Learner = None,
        others: Others = "random",
        reward: str | None = None,
        strict: bool = True,
        autoreset_mode: str | AutoresetMode = AutoresetMode.SAME_STEP,
        **options: Any,
    ) -> None:
        self.game = game_with(game, options)
        self.strict = strict
        self.autoreset_mode = autoreset(autoreset_mode)
        self.metadata = self.metadata | {"autoreset_mode": self.autoreset_mode}
        self.num_envs = num_envs = whole("num_envs", num_envs, 1, _MAX_ENVS)
        self.learner = seats_of_learner(self.game, learner)
        self._learns = np.isin(np.arange(self.game.seats), self.learner)
        self._players, seating = players_of(self.game, others, self.learner)
        self._seating = np.broadcast_to(seating, (num_envs, self.game.seats))
        chosen = reward_of(self.game, reward)
        self._advance = reward_loop(self.game.rules.apply, chosen)
        self._settle = settle_loop(self.game.rules, chosen)
        bits = spaces.Box(0, 1, (self.game.bits,), np.int8)
        mask = spaces.Box(0, 1, (self.game.actions,), np.int8)
        self.single_observation_space = spaces.Dict({"observation": bits, "action_mask": mask})
        self.single_action_space = spaces.Discrete(self.game.actions)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._all = np.arange(num_envs)
        self._legal = np.zeros(num_envs, np.uint64)  # masks of the seats to move; empty if the game is over
        self._seats_now = np.zeros(num_envs, np.uint8)
        self.states = np.full(num_envs, self.game.blank, self.game.dtype)
        self._totals = np.zeros((num_envs, self.game.seats), np.float32)
        self._first = np.zeros(0, np.uint64)  # seeds of the first games; empty before the first reset
        self._dealt = np.zeros(num_envs, np.uint64)  # games dealt since then

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observations, dict[str, Any]]:
        """Deal all games, or those of `options["reset_mask"]`. Raises ValueError for bad seeds."""
        games = self._asked(options, seed) if self._first.size else self._all
        if seed is not None:
            first = self._seeds(seed)
            super().reset(seed=int(first[0]))
            self._begin(first)
        elif not self._first.size:
            self._begin(self._next_seeds())
        self._deal(games)
        return self._seen(np.setdiff1d(np.flatnonzero(self.game.over(self.states)), games))

    def _asked(self, options: dict[str, Any] | None, seed: Any) -> Games:
        mask = (options or {}).get("reset_mask")
        if mask is None:
            return self._all
        if seed is not None or np.shape(mask) != (self.num_envs,):
            raise InputError("reset_mask", f"expected {self.num_envs} booleans, and no seed")
        return np.flatnonzero(mask)

    def _seeds(self, seed: int | Sequence[int | None]) -> NDArray[np.uint64]:
        if not isinstance(seed, Sequence | np.ndarray):
            return np.uint64(check_seed(seed)) + self._all.astype(np.uint64)
        if len(seed) != self.num_envs:
            raise InputError("seed", f"expected one for each of {self.num_envs} environments, not {len(seed)}")
        following = self._next_seeds()
        return np.array([following[k] if one is None else check_seed(one) for k, one in enumerate(seed)], np.uint64)

    def _next_seeds(self) -> NDArray[np.uint64]:
        if self._first.size:
            return later_seeds(self._first, self._dealt)
        return self.np_random.integers(0, SEEDS, self.num_envs, np.uint64)

    def _begin(self, first: NDArray[np.uint64]) -> None:
        self._first = first
        self._dealt[:] = 0
        for index, player in enumerate(self._players):
            player.begin(derive(first, index))

    def _deal(self, games: Games) -> None:
        """Deal the next game in these environments, up to the learner's first decision."""
        self.states[games] = self.game.deal(later_seeds(self._first[games], self._dealt[games]))
        self._dealt[games] += np.uint64(1)
        self._totals[games] = 0
        self._settle(self.states, games, self._totals)
        self._others_play(games)

    def _others_play(self, games: Games) -> None:
        """Play until it is the learner's turn in each of these games, or they are over."""
        while True:
            games = games[~self.game.over(self.states, games)]
            games = games[~self._learns[self.states["turn"][games]]]
            if not games.size:
                return
            decisions = Decisions(self.game, self.states, games)
            actions = decide(self._players, self._seating, decisions)
            decisions.check(actions)
            self._advance(self.states, games, actions, self._totals)

    def step(self, actions: NDArray[Any]) -> Step:
        """Apply the learner's action in each game, integers `[num_envs]`. Raises ValueError for illegal ones."""
        running, chosen = self._checked(actions)
        if running.size:
            self._advance(self.states, running, chosen, self._totals)
            self._others_play(running)
        over = self.game.over(self.states)
        earned = self._totals.copy()
        self._totals[:] = 0
        ended = np.flatnonzero(over)
        final = self._final(ended)
        if ended.size and self.autoreset_mode is AutoresetMode.SAME_STEP:
            self._deal(ended)
            ended = ended[:0]
        observations, info = self._seen(ended)
        rewards = earned[:, list(self.learner)].mean(axis=1)
        info |= {"rewards": earned} | final
        if not self.strict:
            info["played"] = np.array(actions)
            info["played"][running] = chosen
        return observations, rewards, over, np.zeros(self.num_envs, np.bool_), info

    def _checked(self, actions: NDArray[Any]) -> tuple[Games, NDArray[np.uint8]]:
        """Return the undecided games and their actions. Raises ValueError if one is illegal."""
        if not self._first.size:
            raise InputError(self.game.name, "no games have started", "call reset() first")
        chosen = np.asarray(actions)
        if chosen.shape != (self.num_envs,) or chosen.dtype.kind not in "iu":
            raise InputError("actions", f"expected {self.num_envs} integers, not {chosen.dtype} {chosen.shape}")
        wrong = chosen[(chosen < 0) | (chosen >= self.game.actions)]
        if wrong.size:
            raise InputError("actions", f"expected integers from 0 to {self.game.actions - 1}, not {wrong[0]}")
        running = np.flatnonzero(self._legal)
        played = chosen[running].astype(np.uint8)
        if not self.strict:
            played = next_legal(self._legal[running], played)
        self.game.check(self.states, running, played, self._legal[running])
        return running, played

    def _seen(self, ended: Games) -> tuple[Observations, dict[str, Any]]:
        """Return what the seats to move see, in games that have ended and stay the seats that moved last."""
        seats: NDArray[np.uint8] = self.states["turn"].copy()
        self._legal = self.game.legal(self.states)
        seats[(self._legal == 0) & ~self._learns[seats]] = self.learner[0]
        seats[ended] = self._seats_now[ended]
        self._seats_now = seats
        mask = self.action_masks()
        seen = self._unpacked(self.game.observe(self.states, seats=seats), self.game.bits)
        return {"observation": seen, "action_mask": mask}, {"action_mask": mask.copy(), "seat": seats.copy()}

    def action_masks(self) -> NDArray[np.int8]:
        """Return the learner's legal actions `[num_envs, actions]`, as in `info["action_mask"]`."""
        mask = self._unpacked(self._legal[:, None], self.game.actions)
        mask[self._legal == 0] = 1  # decided: any action ends the game
        return mask

    @staticmethod
    def _unpacked(words: NDArray[np.uint64], bits: int) -> NDArray[np.int8]:
        return unpack(words, bits, np.empty((len(words), bits), np.int8))

    def _final(self, ended: Games) -> dict[str, Any]:
        """Return `info` about the finished games, before new ones are dealt."""
        if not ended.size:
            return {}
        returns = np.zeros((self.num_envs, self.game.seats), np.float32)
        returns[ended] = self.game.returns(self.states, ended)
        which = np.zeros(self.num_envs, np.bool_)
        which[ended] = True
        final = {"returns": returns, "_returns": which}
        if self.autoreset_mode is AutoresetMode.DISABLED:
            return final
        seen = self._unpacked(self.game.observe(self.states, ended, self._seats_now[ended]), self.game.bits)
        observations = np.full(self.num_envs, None, object)
        for row, game in enumerate(ended):
            mask = np.zeros(self.game.actions, np.int8)
            observations[game] = {"observation": seen[row], "action_mask": mask}
        return final | {"final_obs": observations, "_final_obs": which.copy()}


def autoreset(mode: str | AutoresetMode) -> AutoresetMode:
    """Return the mode, given by itself or by its text. Raises ValueError unless batches have it."""
    for known in (AutoresetMode.SAME_STEP, AutoresetMode.DISABLED):
        if mode in (known, known.value):
            return known
    raise InputError("autoreset_mode", f"expected SameStep or Disabled, not {mode!r}")


def next_legal(legal: NDArray[np.uint64], actions: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Return the actions, or where one is illegal the next legal one, counting upwards and wrapping to 0."""
    upwards = legal >> actions << actions
    among = np.where(upwards != 0, upwards, legal)
    return np.bitwise_count((among & -among) - np.uint64(1))


def seats_of_learner(game: Game, learner: Learner) -> tuple[int, ...]:
    """Return seats of one team, by default the team of seat 0. Raises ValueError for others."""
    if learner is None:
        return next(team for team in game.teams if 0 in team)
    chosen = tuple(dict.fromkeys(learner)) if isinstance(learner, Iterable) else (learner,)
    if not chosen or not any(set(chosen) <= set(team) for team in game.teams):
        teams = " or of ".join(str(list(team)) for team in game.teams)
        raise InputError("learner", f"expected one or more of {teams}, not {learner!r}")
    return tuple(map(int, chosen))


def players_of(game: Game, others: Others, learner: Sequence[int]) -> tuple[list[Player], NDArray[np.uint8]]:
    """Return the players of the seats other than the learner's, and the index of the player in each seat."""
    seats = [seat for seat in range(game.seats) if seat not in learner]
    seating = np.zeros(game.seats, np.uint8)
    if not isinstance(others, Mapping):
        return [_player(game, others)], seating
    if sorted(others) != seats:
        raise InputError("others", f"expected a player for each of the seats {seats}, not {list(others)}")
    for index, seat in enumerate(others):
        seating[seat] = index
    return [_player(game, player) for player in others.values()], seating


def _player(game: Game, player: str | Player) -> Player:
    if not isinstance(player, str) or own_files.parted(player):
        return player_from(game, player, "others")
    try:
        return named_player(game, player)
    except ValueError as error:
        raise InputError("others", error, "for a network pass others=busso.load_player(game, RUN)") from None
