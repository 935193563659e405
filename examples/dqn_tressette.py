"""`python examples/dqn_tressette.py`: a single-file DQN that learns Tressette in a minute, with torch and Gymnasium.

The style follows single-file implementations such as CleanRL's. The learner plays seats 0 and 2 of 128 parallel games,
random players the others. Two things differ from a standard DQN: a transition joins two decisions of the SAME seat, and
the next decision is valued by its best LEGAL action. At the end the learner plays new games without exploration, and
prints its win rate.
"""

import argparse
from collections.abc import Callable, Sequence
from typing import Any

import gymnasium
import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn

from busso import envs  # noqa: F401 - registers busso/Tressette-v0

Array = NDArray[Any]


def parse(words: Sequence[str] | None = None) -> argparse.Namespace:
    """Parse the command line, or these words."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("--decisions", type=int, default=300_000, help="decisions to learn from")
    parser.add_argument("--seed", type=int, default=1, help="seed of games, network and exploration")
    parser.add_argument("--opponents", default="random", help="player of the other seats, such as greedy")
    parser.add_argument("--reward", default="points", help="reward of the game: points, win or points_and_win")
    parser.add_argument("--num-envs", type=int, default=128, help="games at a time")
    parser.add_argument("--hidden", type=int, default=256, help="width of the two hidden layers")
    parser.add_argument("--lr", type=float, default=1e-3, help="learning rate of Adam, which falls to 0")
    parser.add_argument("--batch-size", type=int, default=512, help="transitions of an update")
    parser.add_argument("--capacity", type=int, default=100_000, help="transitions in the replay buffer")
    parser.add_argument("--starts", type=int, default=5_000, help="transitions before the first update")
    parser.add_argument("--target-every", type=int, default=250, help="updates between copies to the target network")
    parser.add_argument(
        "--epsilon", type=float, default=0.05, help="share of random actions at the end; at first it is 1"
    )
    parser.add_argument("--fraction", type=float, default=0.5, help="share of the budget over which epsilon falls")
    parser.add_argument("--games", type=int, default=4096, help="games that are played at the end")
    return parser.parse_args(words)


class Replay:
    """Ring buffer of transitions; `done` if the game ended before this seat's next decision."""

    def __init__(self, capacity: int, bits: int, actions: int) -> None:
        self.observation, self.following = np.zeros((2, capacity, bits), np.int8)
        self.legal = np.zeros((capacity, actions), np.int8)  # at the next decision
        self.action, self.reward, self.done = (np.zeros(capacity, kind) for kind in (np.int64, np.float32, np.float32))
        self.capacity, self.added = capacity, 0

    def add(
        self, observation: Array, action: Array, reward: Array | float, following: Array, legal: Array, done: bool
    ) -> None:
        """Add one transition per row."""
        at = (self.added + np.arange(len(action))) % self.capacity
        self.observation[at], self.action[at], self.reward[at] = observation, action, reward
        self.following[at], self.legal[at], self.done[at] = following, legal, done
        self.added += len(action)

    def sample(self, rows: int, random: np.random.Generator) -> list[Tensor]:
        """Sample random rows; return the columns in the order of `add`."""
        at = random.integers(0, min(self.added, self.capacity), rows)
        columns = (self.observation, self.action, self.reward, self.following, self.legal, self.done)
        return [torch.from_numpy(column[at]) for column in columns]


def network(bits: int, actions: int, hidden: int) -> nn.Module:
    """Build a network from observations of 0 and 1 to the values of all actions."""
    return nn.Sequential(
        nn.Linear(bits, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, actions)
    )


@torch.inference_mode()
def best(q: nn.Module, seen: dict[str, Array]) -> Array:
    """Return the legal action with the greatest value in each game."""
    values = q(torch.from_numpy(seen["observation"]).float())
    return values.masked_fill(torch.from_numpy(seen["action_mask"]) == 0, -torch.inf).argmax(dim=1).numpy()


def update(q: nn.Module, target: nn.Module, optimizer: torch.optim.Optimizer, batch: list[Tensor]) -> float:
    """Make one step of double DQN and return the loss. The discount is 1: a seat has only ten decisions per hand."""
    observation, action, reward, following, legal, done = batch
    with torch.no_grad():
        after = following.float()
        chosen = q(after).masked_fill(legal == 0, -torch.inf).argmax(dim=1, keepdim=True)
        wanted = reward + (1 - done) * target(after).gather(1, chosen).squeeze(1)
    loss = F.mse_loss(q(observation.float()).gather(1, action[:, None]).squeeze(1), wanted)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


def learn(args: argparse.Namespace, spent_after: Callable[[nn.Module, int], float] | None = None) -> nn.Module:
    """Train for `decisions` decisions and return the network, reproducibly for the same seed and machine.

    `spent_after(network, decisions)` replaces this budget: it returns the fraction of another budget that is spent.
    """
    share = spent_after or (lambda _, decisions: decisions / args.decisions)
    random = np.random.default_rng(args.seed)
    torch.manual_seed(args.seed)
    games = gymnasium.make_vec("busso/Tressette-v0", num_envs=args.num_envs, others=args.opponents, reward=args.reward)
    bits, actions = games.single_observation_space["observation"].shape[0], games.single_action_space.n
    q, target = network(bits, actions, args.hidden), network(bits, actions, args.hidden)
    target.load_state_dict(q.state_dict())
    optimizer = torch.optim.Adam(q.parameters(), lr=args.lr)
    replay = Replay(args.capacity, bits, actions)
    # The latest decision of every seat in every game: its transition is completed by that seat's next decision.
    waiting = np.zeros((args.num_envs, 4), bool)
    observation, action = np.zeros((args.num_envs, 4, bits), np.int8), np.zeros((args.num_envs, 4), np.int64)
    seen, info = games.reset(seed=args.seed)
    every, decisions, updates, loss, shown = np.arange(args.num_envs), 0, 0, 0.0, 0.1
    while (spent := share(q, decisions)) < 1:
        seat = info["seat"]
        joined = np.flatnonzero(waiting[every, seat])
        before = observation[joined, seat[joined]], action[joined, seat[joined]]
        replay.add(*before, 0.0, seen["observation"][joined], seen["action_mask"][joined], False)
        explores = random.random(args.num_envs) < max(args.epsilon, 1 - spent / args.fraction)
        by_chance = (random.random(seen["action_mask"].shape) * seen["action_mask"]).argmax(axis=1)
        chosen = np.where(explores, by_chance, best(q, seen))
        observation[every, seat], action[every, seat], waiting[every, seat] = seen["observation"], chosen, True
        seen, reward, over, _, info = games.step(chosen)
        for each in (0, 2):  # the last decision of each seat gets the reward of the hand
            ended = np.flatnonzero(over & waiting[:, each])
            last = observation[ended, each], action[ended, each]
            replay.add(*last, reward[ended], seen["observation"][ended], seen["action_mask"][ended], True)
        waiting[over] = False
        if replay.added >= args.starts:
            for group in optimizer.param_groups:
                group["lr"] = args.lr * (1 - spent)
            loss = update(q, target, optimizer, replay.sample(args.batch_size, random))
            updates += 1
            if updates % args.target_every == 0:
                target.load_state_dict(q.state_dict())
        decisions += args.num_envs
        if share is not spent_after and decisions >= shown * args.decisions:
            print(f"{shown:4.0%}  {decisions:9,} decisions  {updates:6,} updates  loss {loss:.4f}", flush=True)
            shown += 0.1
    return q


def evaluate(q: nn.Module, args: argparse.Namespace) -> tuple[Array, Array]:
    """Play `games` new games; return whether each is won, and the difference in points, `[games]`."""
    width = min(args.games, 1024)
    games = gymnasium.make_vec("busso/Tressette-v0", num_envs=width, others=args.opponents)
    seen, _ = games.reset(seed=10**9 + args.seed)
    points: list[Array] = []
    # All hands have the same length, so the first to end are an unbiased sample.
    while sum(map(len, points)) < args.games:
        seen, _, over, _, info = games.step(best(q, seen))
        if over.any():
            points.append(info["returns"][over, 0] - info["returns"][over, 1])
    difference = np.concatenate(points)[: args.games]
    return difference > 0, difference


def interval(values: Array) -> tuple[float, float]:
    """Return the mean and half the 95% interval."""
    return float(values.mean()), float(1.96 * values.std(ddof=1) / np.sqrt(len(values)))


def main() -> None:
    """Train, play and print the result."""
    args = parse()
    torch.set_num_threads(1)
    q = learn(args)
    won, difference = evaluate(q, args)
    (share, share_half), (points, points_half) = interval(won), interval(difference)
    print(
        f"against {args.opponents}: {share:.1%} of {len(won):,} hands won (95% interval {share - share_half:.1%} to "
        f"{share + share_half:.1%}), {points:+.2f} points a hand (± {points_half:.2f})"
    )
    print(f"better than {args.opponents}: {'yes' if share - share_half > 0.5 else 'not shown'}")


if __name__ == "__main__":
    main()
