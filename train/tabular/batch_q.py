"""Batch Q-learning: self-play fills a batch of transitions, sweeps over it update the values; and its trainer."""

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from busso.cards.compiled.bits import bit, nth_bit, popcount
from busso.cards.compiled.jit import njit
from busso.cards.compiled.splitmix import GAMMA, below, mix, stream, uniform
from busso.cards.duplicate import duel, meaning_of_won
from busso.cards.game import Game
from busso.cards.mdp import Numbering, Policy
from busso.cards.play import Stop, StoppablePlayer, stoppable
from busso.cards.player_specs import POLICIES
from busso.cards.players import named_player
from busso.cards.tables import TablePlayer, numbering_of, save_policy
from busso.command.console import output_may_fail, result_console
from busso.command.settings.compose import as_yaml
from busso.train.run import results
from busso.train.run.budget import Budget
from busso.train.run.every import ROWS, Every
from busso.train.run.folder import RunFolder
from busso.train.run.metrics import Metrics
from busso.train.run.progress import Status, results_table
from busso.train.run.runner import Runner
from busso.train.settings.tabular import BatchQSettings

Values = NDArray[np.float32]
_FIRST_ROWS = 1 << 20
log = logging.getLogger("train")
TEXT_FORM = "policy.json"
KEEP = 3  # checkpoints, in case one is damaged; each has 6 MB for the 361,001 states of Spike
SCALARS = (
    "rollout/iteration",
    "rollout/epsilon",
    "rollout/episode_return",  # of one seat in one episode of the numbering, such as a hand
    "train/updates",
    "table/visited",  # states with a tried action
    "table/unvisited",  # listed states without a tried action
    "table/changed",  # states whose greedy action changed in the iteration
    "time/env_steps_per_second",
    "time/updates_per_second",
)


class TabularTransitions(NamedTuple):
    """Transitions in the order of play. `column` is the index of the action among the state's legal ones."""

    state: NDArray[np.int32]  # [rows]
    column: NDArray[np.uint8]  # [rows]
    reward: NDArray[np.float32]  # [rows]
    next_state: NDArray[np.int32]  # [rows], the terminal state at the end of an episode


def untried_values(numbering: Numbering) -> Values:
    """Return a table `[states, columns]` of untried actions; the terminal state has value 0."""
    columns = max(int(mask).bit_count() for mask in np.unique(numbering.legal))
    values = np.full((numbering.legal.size, columns), -np.inf, np.float32)
    values[numbering.terminal, 0] = 0.0
    return values


@njit
def sweep(values: Values, batch: TabularTransitions, passes: int, alpha: float, gamma: float) -> None:
    """Update `Q(s, a) += alpha * (r + gamma * max Q(s', .) - Q(s, a))` over the batch, `passes` times."""
    states, columns, rewards, successors = batch
    for _ in range(passes):
        for k in range(states.size):
            best = values[successors[k], 0]
            for column in range(1, values.shape[1]):
                best = max(best, values[successors[k], column])
            old = values[states[k], columns[k]]
            values[states[k], columns[k]] = old + alpha * (rewards[k] + gamma * best - old)


@njit
def greedy(values: Values, legal: NDArray[np.uint64], initial: Policy) -> Policy:
    """Return the first tried action of the greatest value in each state, or else the initial action."""
    policy = initial.copy()
    for state in range(legal.size):
        best = -np.inf
        for column in range(popcount(legal[state])):
            if values[state, column] > best:
                best = values[state, column]
                policy[state] = nth_bit(legal[state], column)
    return policy


def visited(values: Values) -> NDArray[np.bool_]:
    """Return a flag per state: True if some action has been tried."""
    return np.asarray(np.isfinite(values).any(axis=1))


def play_batch(
    game: Game,
    numbering: Numbering,
    reward: Callable[..., None],
    seeds: NDArray[np.uint64],
    policy: Policy,
    epsilon: float,
    unexplored: Sequence[int] = (),
) -> TabularTransitions:
    """Play one game per seed by `policy`, or with probability `epsilon` by a legal action not in `unexplored`."""
    loop = _play_loop(game.rules, numbering.number, numbering.episode, reward)
    one = np.full(2, game.blank, game.dtype)
    drawn = np.uint64(sum(1 << action for action in range(game.actions) if action not in unexplored))
    rows, batch = loop(one, seeds, policy, epsilon, drawn, game.seats, numbering.terminal)
    return TabularTransitions(*(column[:rows] for column in batch))


def by_whole_games(numbering: Numbering) -> Numbering:
    """Return the same states, with the whole game as one episode."""
    return replace(numbering, episode=_no_episode_ends)


@njit
def _no_episode_ends(state: Any) -> int:
    return 0


def mark_tried(values: Values, batch: TabularTransitions) -> None:
    """Set the value of the batch's untried actions to 0."""
    rows = values[batch.state, batch.column]
    new = np.isneginf(rows)
    values[batch.state[new], batch.column[new]] = 0.0


@njit
def _epsilon_greedy(drawn: np.uint64, greedy_action: int, epsilon: float, bits: np.uint64) -> int:
    if drawn != np.uint64(0) and uniform(bits) < epsilon:
        return nth_bit(drawn, below(mix(bits), popcount(drawn)))
    return greedy_action


@cache
def _play_loop(
    rules: Any, number: Callable[..., int], episode: Callable[..., int], reward_one: Callable[..., None]
) -> Callable[..., Any]:
    deal_one, legal_one, apply_one, _, over_one, _ = rules

    @njit
    def close_transition(batch: Any, open_rows: Any, totals: Any, seat: int, successor: int) -> None:
        """Complete a seat's open transition, whose reward so far held the seat's total before the action."""
        row = open_rows[seat]
        if row >= 0:
            batch[2][row] = totals[seat] - batch[2][row]
            batch[3][row] = successor
            open_rows[seat] = -1

    @njit
    def play(one: Any, seeds: Any, policy: Any, epsilon: float, drawn: Any, seats: int, terminal: int) -> Any:
        n = _FIRST_ROWS
        batch = (np.empty(n, np.int32), np.empty(n, np.uint8), np.empty(n, np.float32), np.empty(n, np.int32))
        rows = 0
        open_rows = np.full(seats, -1)
        totals = np.zeros(seats, np.float32)
        state = one[0]
        for k in range(seeds.size):
            deal_one(state, seeds[k])
            generator = mix(seeds[k])
            totals[:] = 0
            while not over_one(state):
                if rows == batch[0].size:
                    states, columns, rewards, successors = batch
                    batch = (
                        np.append(states, states),
                        np.append(columns, columns),
                        np.append(rewards, rewards),
                        np.append(successors, successors),
                    )
                seat, here, before = state.turn, number(state), episode(state)
                close_transition(batch, open_rows, totals, seat, here)
                mask = legal_one(state)
                generator += GAMMA
                action = _epsilon_greedy(mask & drawn, policy[here], epsilon, mix(generator))
                batch[0][rows] = here
                batch[1][rows] = popcount(mask & (bit(action) - np.uint64(1)))
                batch[2][rows] = totals[seat]
                open_rows[seat] = rows
                rows += 1
                one[1] = one[0]
                apply_one(state, action)
                reward_one(one[1], action, state, totals)
                if over_one(state) or episode(state) != before:
                    for other in range(seats):
                        close_transition(batch, open_rows, totals, other, terminal)
                    totals[:] = 0
        return rows, batch

    return play


@dataclass
class BatchQCounters:
    """Progress of a run, saved with every checkpoint."""

    iteration: int = 0
    env_steps: int = 0  # decisions
    updates: int = 0
    seconds: float = 0.0  # of learning, over all starts of the run


class BatchQTrainer:
    """Trainer of a table of action values, from batches of self-play."""

    def __init__(self, settings: BatchQSettings, folder: RunFolder) -> None:
        self.settings = settings
        self._folder = folder
        self._game = settings.load_game()
        numbering = numbering_of(self._game)
        self._numbering = by_whole_games(numbering) if settings.whole_games else numbering
        self._reward = self._game.rewards[settings.reward_name(self._game)]
        self.values = untried_values(self._numbering)
        self.policy: Policy = self._numbering.initial.copy()
        self.counters = BatchQCounters()
        self.budget = Budget(settings.iterations, None)
        self.keep = KEEP
        self.every = {"log": Every(1, 0.0, dense=ROWS), "checkpoint": Every(settings.save_every, 0.0)}

    @property
    def progress(self) -> Status:
        return Status(self.counters.iteration, "iterations", self.counters.env_steps, self.counters.updates)

    def describe(self) -> str:
        return f"{self.settings.algo} in a table of {self._numbering.listed.size - 1:,} states"

    def open_metrics(self, folder: Path) -> Metrics:
        return Metrics(folder, (), as_yaml(self.settings), self.counters.env_steps, scalars=SCALARS)

    def begin(self, runner: Runner) -> None:
        """Save the initial policy, or the one that a failed start could not write."""
        self._runner = runner
        self._began = self.counters.iteration
        self._save_policy_if_due()

    def step(self) -> None:
        self._row = self._iterate()
        self._save_policy_if_due()

    def log_row(self) -> dict[str, float]:
        seen, changed = self._row["table/visited"], self._row["table/changed"]
        self._runner.display.remember("table", f"{seen:,} states visited, {changed:,} actions changed")
        log.info("iteration %d: %s", self.counters.iteration, self._row)
        return self._row

    def complete(self) -> bool:
        return self.budget.episodes_left(self.counters.iteration) == 0

    def worth_another_start(self) -> bool:
        return self.counters.iteration > self._began

    def _iterate(self) -> dict[str, float]:
        """Play, sweep and compute the greedy policy; return the row of metrics."""
        settings, counters, started = self.settings, self.counters, time.perf_counter()
        number = counters.iteration
        epsilon = settings.epsilon * settings.epsilon_decay**number
        seeds = stream(settings.seed, "episodes", number * settings.games, settings.games)
        batch = play_batch(self._game, self._numbering, self._reward, seeds, self.policy, epsilon, settings.unexplored)
        played = time.perf_counter()
        values = self.values.copy()  # an error during a sweep leaves the table unchanged
        mark_tried(values, batch)
        sweep(values, batch, settings.passes, settings.step_size, settings.discount)
        swept = time.perf_counter()
        before, self.values = self.policy, values
        self.policy = greedy(values, self._numbering.legal, self._numbering.initial)
        counters.iteration += 1
        counters.env_steps += batch.state.size
        counters.updates += batch.state.size * settings.passes
        seconds = time.perf_counter() - started
        counters.seconds += seconds
        self.budget.add(seconds)
        seen = visited(self.values)
        # Episodes count once for each seat that decided in them.
        episodes = int((batch.next_state == self._numbering.terminal).sum())
        return {
            "table/visited": int(seen.sum()),
            "table/unvisited": int((~seen[self._numbering.listed]).sum()),
            "table/changed": int((self.policy != before).sum()),
            "rollout/iteration": counters.iteration,
            "rollout/epsilon": epsilon,
            "rollout/episode_return": float(batch.reward.sum(dtype=np.float64)) / episodes,
            "train/updates": counters.updates,
            "time/env_steps_per_second": batch.state.size / (played - started),
            "time/updates_per_second": batch.state.size * settings.passes / (swept - played),
        }

    def _save_policy_if_due(self) -> None:
        if self.counters.iteration % self.settings.save_every == 0:
            self._save_policy()

    def _save_policy(self) -> None:
        path = self._folder.path / "policies" / POLICIES.name(self.counters.iteration)
        path.parent.mkdir(exist_ok=True)
        save_policy(path, self._game, self.policy)

    def state_dict(self) -> dict[str, Any]:
        return {
            "settings": asdict(self.settings),
            "values": torch.from_numpy(self.values),
            "counters": asdict(self.counters),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore `state_dict`. Raises ValueError if the table's shape differs."""
        values = state["values"].numpy()
        if values.shape != self.values.shape or values.dtype != np.float32:
            raise ValueError(f"a table of {values.shape}, not {self.values.shape}")
        self.values = values.copy()
        self.counters = BatchQCounters(**state["counters"])
        self.policy = greedy(self.values, self._numbering.legal, self._numbering.initial)
        self.budget.seconds_before = self.counters.seconds
        for every in self.every.values():  # nothing is overdue
            every.skip(self.counters.iteration)

    def report(self, stop_requested: Stop) -> None:
        """Write the last policy and print its results on duplicate deals, played unless results.json has them."""
        settings, counters, game = self.settings, self.counters, self._game
        self._save_policy()
        save_policy(self._folder.path / TEXT_FORM, game, self.policy)
        names, deals = settings.evaluation.opponents, settings.evaluation.final_deals
        found = self._folder.results_against(names, deals)
        if found is None:
            player = StoppablePlayer(TablePlayer(numbering_of(game).number, self.policy), stop_requested)
            seeds = stream(settings.seed, "final", 0, deals)
            others = {name: stoppable(game, name, named_player(game, name), stop_requested) for name in names}
            duels = {name: duel(game, player, other, seeds) for name, other in others.items()}
            found = results.of_duels(duels, game.unit)
            self._folder.write_results(found, self.progress.done, self.progress.env_steps)
        states = int(visited(self.values).sum())
        says = f"{settings.folder}: {counters.updates:,} updates, {states:,} states visited, {counters.seconds:.1f} s"
        with output_may_fail():
            print(says)
            if found:
                title = f"{settings.folder}, last policy"
                result_console().print(results_table(title, game.unit, found, meaning_of_won(game)))
