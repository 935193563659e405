"""Names of a run's curves."""

from collections.abc import Sequence

from busso.cards.player_specs import curve_name

SCALARS = (
    "rollout/episode_return",  # mean over the network's seats; empty in self-play, where it is 0
    "rollout/absolute_return",  # mean absolute value: how much is won and lost in a game
    "rollout/episode_length",  # decisions of all seats per game
    "rollout/epsilon",
    "rollout/episodes",
    "rollout/too_old",
    "train/loss",
    "train/q_mean",
    "train/td_error",
    "train/grad_norm",
    "train/lr",
    "train/updates",
    "replay/size",
    "replay/samples_per_insert",
    "time/env_steps_per_second",
    "time/updates_per_second",
    "time/weights_lag",
)


def evaluation_scalars(opponents: Sequence[str]) -> list[str]:
    """Return the names of the evaluation curves against these opponents."""
    return [evaluation_scalar(what, name) for name in opponents for what in ("win_rate", "points")]


def evaluation_scalar(what: str, opponent: str) -> str:
    """Return the name, valid for TensorBoard, of the curve of `win_rate` or `points` against an opponent."""
    return f"eval/{what}_vs_{curve_name(opponent)}"
