"""Games of an agent with legal actions, choice, values and outcome of every decision, counted by stage of the game."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from matplotlib.patches import Patch
from numpy.typing import NDArray

from busso.cards.compiled.splitmix import stream
from busso.cards.duplicate import seatings
from busso.cards.game import Game, States
from busso.cards.play import Actions, Decisions, Player, play
from busso.cards.players import named_player
from busso.cards.presentation import presentation_of
from busso.evaluate.report.drawing import COLOURS, Numbers, new_figure, style, to_svg
from busso.evaluate.report.page import Block, Figure, TextTable
from busso.train.network.q_network import NetworkPlayer
from busso.train.players.load import player_from_text
from busso.train.players.trained import load_trained
from busso.train.run.read import Run
from busso.train.settings.dqn import Discounts, TrainSettings

_CPU = torch.device("cpu")
_STREAM = "report"  # of deals that no run has seen
_OTHER = 1  # index of the agent's opponent
_FEW = 12  # most actions that get a column each


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
        return Agent(game, player_from_text(game, str(run.folder), _CPU), None, reward, (1.0, 1.0))
    network, _ = load_trained(game, run.folder, _CPU, "run")
    only = settings.opponents.only
    opponent = None if only is None else player_from_text(game, only, _CPU, "opponents.only")
    return Agent(game, network, network, reward, settings.learner.discounts, opponent, only or "")


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


def by_action(watched: ObservedGames) -> list[Block]:
    """Return the shares of each action by stage, as a figure and a table; empty for a game of many actions."""
    game = watched.agent.game
    if game.actions > _FEW:
        return []
    stages, names = watched.phases, presentation_of(game).phases
    labels = [game.action_text(action) for action in range(game.actions)]
    counts = np.zeros((len(names), game.actions), np.int64)
    np.add.at(counts, (stages, watched.action), 1)
    may = np.zeros_like(counts)
    np.add.at(may, stages, watched.legal.astype(np.int64))
    seen = np.flatnonzero(counts.any(axis=1)).tolist()
    rows = []
    for number in seen:
        taken = zip(counts[number], may[number], strict=True)
        shares = [f"{count / legal:.1%}" if legal else "" for count, legal in taken]
        choices = f"{watched.choices[stages == number].mean():.2f}"
        rows.append([names[number], f"{counts[number].sum():,}", choices, *shares])
    columns = ("stage", "decisions", "legal actions", *labels)
    caption = (
        "Of the decisions in which an action was legal, the share in which it was taken; legal actions on average."
    )
    used = [k for k in range(len(columns)) if any(row[k] for row in rows)]
    table = TextTable([columns[k] for k in used], [[row[k] for k in used] for row in rows], caption)
    if len(rows) < 2:
        return [table]
    panel = [row[0] for row in rows], counts[seen] / counts[seen].sum(axis=1, keepdims=True)
    svg = stacked("choices", {"": panel}, labels)
    return [Figure(svg, "Shares of the actions taken in each stage of the game.", "Actions taken, by stage."), table]


def stacked(name: str, panels: Mapping[str, tuple[Sequence[str], Numbers]], labels: Sequence[str]) -> str:
    """Draw stacked bars of shares, `{title: (rows, shares [rows, labels])}`, as SVG."""
    with style():
        most = max(len(rows) for rows, _ in panels.values())
        figure, axes = new_figure(0.9 + 0.24 * most, 1, len(panels))
        for axis, (title, (rows, shares)) in zip(axes[0], panels.items(), strict=True):
            left = np.zeros(len(rows))
            for number in range(len(labels)):
                axis.barh(range(len(rows)), shares[:, number], left=left, height=0.75, **_fill(number))
                left += shares[:, number]
            axis.set_yticks(range(len(rows)), rows)
            axis.set_ylim(len(rows) - 0.45, -0.55)
            axis.set_xlim(0, 1)
            axis.set_title(title)
            axis.xaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
            axis.grid(visible=False, axis="y")
        seen = [
            number for number in range(len(labels)) if any(shares[:, number].any() for _, shares in panels.values())
        ]
        patches = [Patch(**_fill(number)) for number in seen]
        columns = 5 if max(len(labels[number]) for number in seen) < 22 else 3
        figure.legend(patches, [labels[number] for number in seen], loc="outside lower left", ncols=columns)
        return to_svg(figure, name)


def _fill(number: int) -> dict[str, Any]:
    return {"color": COLOURS[number % len(COLOURS)], "alpha": 1.0 if number < len(COLOURS) else 0.45}
