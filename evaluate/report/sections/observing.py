"""Games of an agent with legal actions, choice, values and outcome of every decision."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from busso.cards.compiled.splitmix import stream
from busso.cards.game import Game, States
from busso.cards.matches.duplicate import seatings
from busso.cards.play import Actions, Decisions, Player, play
from busso.cards.players import named_player
from busso.cards.presentation import presentation_of
from busso.evaluate.players import load_player
from busso.evaluate.report.drawing import Numbers
from busso.train.dqn.network.q_network import NetworkPlayer
from busso.train.dqn.players.load import load_trained, player_of
from busso.train.run.read import Run
from busso.train.settings.dqn import TrainSettings
from busso.train.settings.targets import Discounts

_CPU = torch.device("cpu")
_STREAM = "report"  # of deals that no run has seen
_OTHER = 1  # index of the agent's opponent


@dataclass(frozen=True)
class Agent:
    """Player of a report; `network` is None for a table, which has no values by observation."""

    game: Game
    player: Player
    network: NetworkPlayer | None
    reward: str
    discounts: Discounts
    opponent: Player | None = None  # in training, if that was a single fixed player
    opponent_name: str = ""


def load_agent(run: Run) -> Agent:
    """Load the best network of a run, or its table. Raises CheckpointError and SettingsError as `load_player`."""
    settings = run.settings
    game = settings.load_game()
    reward = settings.reward_name(game)
    if not isinstance(settings, TrainSettings):
        return Agent(game, load_player(game, str(run.folder), _CPU), None, reward, (1.0, 1.0))
    network, _ = load_trained(game, run.folder, _CPU, "run")
    opponent = (
        None if settings.opponents.only is None else player_of(game, settings.opponents.only, _CPU, "opponents.only")
    )
    return Agent(game, network, network, reward, settings.learner.discounts, opponent, settings.opponents.only or "")


@dataclass(frozen=True)
class ObservedGames:
    """Decisions of the agent in the order played, one row each.

    `values` are NaN for illegal actions and without a network. `outcome` is the return of the seat from this decision
    on, by the run's reward and discount: the quantity that the value of the action estimates.
    """

    agent: Agent
    games: int
    game: NDArray[np.int64]  # [decisions], index of the game
    seat: NDArray[np.int64]
    states: States  # before the decision
    legal: NDArray[np.bool_]  # [decisions, actions]
    action: NDArray[np.int64]
    values: NDArray[np.float32]  # [decisions, actions]
    outcome: Numbers
    results: NDArray[np.float32]  # [games, seats], in the unit of the game

    @property
    def chosen(self) -> Numbers:
        """Values of the actions taken, `[decisions]`."""
        return np.take_along_axis(self.values, self.action[:, None], axis=1)[:, 0].astype(np.float64)

    @property
    def phases(self) -> NDArray[np.int64]:
        """Phase of the game at each decision, by number, `[decisions]`."""
        return presentation_of(self.agent.game).phase(self.states)

    @property
    def choices(self) -> NDArray[np.int64]:
        """Number of legal actions, `[decisions]`."""
        count: NDArray[np.int64] = self.legal.sum(axis=1)
        return count


def watch_games(agent: Agent, games: int, seed: int) -> ObservedGames:
    """Play `games` games with the agent in all seats, or against its opponent if it has one."""
    game, players = agent.game, [agent.player]
    seats = np.zeros((games, game.seats), np.uint8)
    if agent.opponent is not None:
        players.append(agent.opponent)
        rows = seatings(game)
        seats = rows[np.arange(games) % len(rows)]
    rounds: list[tuple[NDArray[Any], ...]] = []

    def keep(decisions: Decisions, actions: Actions, totals: NDArray[np.float32]) -> None:
        mine = seats[decisions.games, decisions.seats] != _OTHER
        number, seat = decisions.games[mine], decisions.seats[mine].astype(np.int64)
        rounds.append(
            (number, seat, totals[number, seat], decisions.states[number], decisions.legal[mine], actions[mine])
        )

    states, totals = play(
        game, stream(seed, _STREAM, 0, games), players, seats, reward=game.rewards[agent.reward], watch=keep
    )
    number, seat, _, before, masks, actions = (np.concatenate(column) for column in zip(*rounds, strict=True))
    legal = (masks[:, None] >> np.arange(game.actions, dtype=np.uint64)) & np.uint64(1) != 0
    values = np.full(legal.shape, np.nan, np.float32)
    if agent.network is not None:
        values[legal] = agent.network.values(game.observe(before))[legal]
    outcome = _outcomes(rounds, agent.discounts, totals)
    action = actions.astype(np.int64)
    return ObservedGames(agent, games, number, seat, before, legal, action, values, outcome, game.returns(states))


def _outcomes(rounds: Sequence[tuple[NDArray[Any], ...]], discounts: Discounts, totals: NDArray[np.float32]) -> Numbers:
    """Return the outcomes `[decisions]`, accumulated from the last round to the first."""
    following = np.zeros(totals.shape)
    earned_then = totals.astype(np.float64)
    outcomes: list[Numbers] = []
    for games, seats, earned, *_ in reversed(rounds):
        reward = earned_then[games, seats] - earned
        here = reward + np.where(reward, discounts[1], discounts[0]) * following[games, seats]
        following[games, seats], earned_then[games, seats] = here, earned
        outcomes.append(here)
    return np.concatenate(outcomes[::-1])


def rules_choose(watched: ObservedGames, rows: NDArray[np.int64], name: str, seed: int) -> NDArray[np.int64]:
    """Return the actions that a named player takes in these decisions, `[rows]`."""
    player = named_player(watched.agent.game, name)
    player.begin(stream(seed, _STREAM, 1, rows.size))
    decisions = Decisions(watched.agent.game, watched.states[rows], np.arange(rows.size))
    return player.act(decisions).astype(np.int64)
