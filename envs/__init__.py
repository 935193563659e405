"""The games of busso as environments for other people's code, by the interfaces that it knows.

- PettingZoo: `from busso.envs import tressette_v0, spike_v0; env = tressette_v0.env()`;
- Gymnasium, once this package is imported: `busso/Blackjack-v0` and `busso/SetteMezzo-v0`, and as vector environments
  (`gymnasium.make_vec`) also `busso/Tressette-v0` and `busso/Spike-v0`.

They need the extra `envs` (pettingzoo, gymnasium) and know the games alone, nothing of the trainer.
docs/howto/environments.md has what each of them hands out.
"""

from __future__ import annotations

from busso.one_name import require

require(__name__)

try:
    import gymnasium
    import pettingzoo  # noqa: F401 - that it is there
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        f"the environments need {error.name}: pip install 'PATH[envs]', where PATH is a clone or a wheel of busso",
        name=error.name,
    ) from None

_VECTOR = "busso.envs.vector:SeatsVectorEnv"

for _name, _game, _solo in (
    ("Blackjack", "blackjack", "busso.envs.solo:SoloEnv"),
    ("SetteMezzo", "sette_mezzo", "busso.envs.solo:SoloEnv"),
    ("Tressette", "tressette", None),
    ("Spike", "spike", None),
):
    gymnasium.register(f"busso/{_name}-v0", entry_point=_solo, vector_entry_point=_VECTOR, kwargs={"game": _game})
