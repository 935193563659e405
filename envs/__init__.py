"""Environments: the games of busso behind the standard interfaces.

- PettingZoo: `from busso.envs import tressette_v0, spike_v1; env = tressette_v0.env()`;
- Gymnasium, once this package is imported: `busso/Tressette-v0`, `busso/Spike-v1`, `busso/Blackjack-v0` and
  `busso/SetteMezzo-v0`, single games with `gymnasium.make` and batches with `gymnasium.make_vec`.

They need the extra `envs` (pettingzoo, gymnasium) and depend on the games only, not on the trainer.
docs/howto/environments.md describes the observations, rewards and infos of each.
"""

try:
    import gymnasium
    import pettingzoo  # noqa: F401 - checks that it is installed
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        f"the environments need {error.name}: pip install 'PATH[envs]', where PATH is a clone or a wheel of busso",
        name=error.name,
    ) from None

_SOLO, _VECTOR = "busso.envs.solo:SoloEnv", "busso.envs.vector:SeatsVectorEnv"

for _name, _game in (
    ("Blackjack-v0", "blackjack"),
    ("SetteMezzo-v0", "sette_mezzo"),
    ("Tressette-v0", "tressette"),
    ("Spike-v1", "spike"),
):
    gymnasium.register(f"busso/{_name}", entry_point=_SOLO, vector_entry_point=_VECTOR, kwargs={"game": _game})
