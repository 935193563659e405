"""The games of busso as environments for other people's code, by the interfaces that it knows.

- PettingZoo: `from busso.envs import tressette_v0, spike_v1; env = tressette_v0.env()`;
- Gymnasium, once this package is imported: `busso/Tressette-v0`, `busso/Spike-v1`, `busso/Blackjack-v0` and
  `busso/SetteMezzo-v0`, one game by `gymnasium.make` and whole batches by `gymnasium.make_vec`.

They need the extra `envs` (pettingzoo, gymnasium) and know the games alone, nothing of the trainer.
docs/howto/environments.md has what each of them hands out.
"""

from __future__ import annotations

try:
    import gymnasium
    import pettingzoo  # noqa: F401 - that it is there
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
