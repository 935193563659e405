"""`python examples/champion_in_environments.py`: busso's trained agent plays in PettingZoo and Gymnasium.

It receives observations and action masks from the environments, like any external agent. `--player
runs/tressette/NAME` selects another network, `--game spike` the other game with several seats.
"""

import argparse

import gymnasium
import numpy as np
import torch
from numpy.typing import NDArray

from busso import envs  # noqa: F401 - registers the environments with Gymnasium
from busso.cards.play import Player
from busso.cards.players import named_player
from busso.envs import spike_v1, tressette_v0
from busso.envs.aec import SeatsEnv
from busso.envs.observation_player import ObservationPlayer
from busso.train.players.load import player_from_text


def parse() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--game", default="tressette", choices=["tressette", "spike"], help="which game")
    parser.add_argument("--player", default="champion", help="a run folder, a checkpoint or champion (default)")
    parser.add_argument("--against", help="a player by name; by default a rule player of the game")
    parser.add_argument("--turns", type=int, default=100, help="games in PettingZoo, one at a time (default: 100)")
    parser.add_argument("--batch", type=int, default=2048, help="games in the vector environment (default: 2048)")
    return parser.parse_args()


def in_pettingzoo(env: SeatsEnv, player: Player, against: str, games: int) -> NDArray[np.float64]:
    """Run a PettingZoo loop with `player` as player_0 and its partner; return player_0's reward in each game."""
    ours = ObservationPlayer(env.game, player)
    other = named_player(env.game, against)
    team = next(team for team in env.game.teams if 0 in team)
    mine = {f"player_{seat}" for seat in team}
    earned = np.zeros(games)
    for game in range(games):
        env.reset(seed=game)
        for agent in env.agent_iter():
            observation, reward, over, _, _ = env.last()
            if agent == "player_0":
                earned[game] += reward
            if over:
                env.step(None)
            else:
                env.step(ours.act_one(observation) if agent in mine else env.ask(other))
    return earned


def in_gymnasium(name: str, player: Player, against: str, games: int) -> NDArray[np.float64]:
    """Play 256 games at a time; return the reward of `player`'s first seat in each game."""
    width = min(256, games)
    many = gymnasium.make_vec(name, num_envs=width, others=against)
    ours = ObservationPlayer(many.unwrapped.game, player, width)  # type: ignore[attr-defined]
    seen, _ = many.reset(seed=0)
    each, running = -(-games // width), np.zeros(width)
    earned: list[list[float]] = [[] for _ in range(width)]
    # The same number of games from each environment: stopping at the first to end would favour short games.
    while min(map(len, earned)) < each:
        seen, reward, over, _, _ = many.step(ours.act(seen))
        running += reward
        for k in np.flatnonzero(over):
            earned[k].append(running[k])
        running[over] = 0
    return np.array([those[:each] for those in earned]).ravel()


def say(where: str, earned: NDArray[np.float64]) -> None:
    """Print the mean with its 95% interval."""
    half = 1.96 * earned.std(ddof=1) / np.sqrt(len(earned))
    print(f"{where}: {earned.mean():+.3f} (± {half:.3f}) a game, {(earned > 0).mean():.1%} of {len(earned)} games won")


def main() -> None:
    """Play in both environments."""
    args = parse()
    env = {"tressette": tressette_v0, "spike": spike_v1}[args.game].env()
    name = {"tressette": "busso/Tressette-v0", "spike": "busso/Spike-v1"}[args.game]
    against = args.against or {"tressette": "greedy", "spike": "cautious"}[args.game]
    player = player_from_text(env.game, args.player, torch.device("cpu"))
    print(f"{args.player} against {against}; rewards are those of the environment")
    say("PettingZoo", in_pettingzoo(env, player, against, args.turns))
    say("Gymnasium", in_gymnasium(name, player, against, args.batch))


if __name__ == "__main__":
    main()
