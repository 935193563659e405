"""The user's files on the command line: names them, and registers their games and recipes with Hydra."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from busso.base import own_files
from busso.command.conf_folder import CONF
from busso.command.settings.checks import SettingsError, check_one_of, errors_about
from busso.command.settings.quoting import NETWORK_KEY, given, in_full, parsed, read_by_hydra
from busso.command.settings.untrusted import known_games, trust_game

if TYPE_CHECKING:
    from busso.cards.game import Game

_LEARNER = "dqn"  # the algorithm that a RECIPE configures
# Target of a game whose RECIPE chooses none: better than lambda returns in both games of examples/own
# (docs/reference/own_game.md).
_TARGET = "target_network"


def trust_games(overrides: Sequence[str]) -> None:
    """Load the game files and installed games that the overrides choose, and register their groups with Hydra.

    The overrides stay as typed: `game=./war.py` chooses `game/./war.py`, and so does every job of a sweep. Raises
    SettingsError for an invalid game, OwnCodeError for an error in a file's code.
    """
    chosen = given(overrides).get("game")
    for choice in _choices(f"game={chosen.value}") if chosen and chosen.value else ():
        if (CONF / "game" / f"{choice}.yaml").is_file():
            continue
        from busso.cards.own.files import is_path  # imports NumPy, for which --help does not wait

        if is_path(choice) or choice in known_games():
            _store(choice)


def trust_players(values: Any) -> None:
    """Trust the Python files, such as `./mine.py:Lowest`, among the keys and values of typed settings."""
    for path in own_files.paths_in(values):
        if Path(path).is_file():
            own_files.trust(path)


def trust_network(override: str) -> bool:
    """Name the files of `network=./net.py`, for a command that reads runs; returns whether it is such an override.

    Raises SettingsError for a missing file or name, OwnCodeError for a fault in the file.
    """
    found = parsed(in_full(override))
    if found.key != NETWORK_KEY:
        return False
    for text in (found.value or "").strip("[]").split(","):
        words = own_files.parted(text.strip())
        if words is None:
            raise SettingsError("network", f"expected a Python file, as in network=./net.py, not {text}")
        path, named = words[0], words[1].partition(":")[0]
        with errors_about("network"):
            file = own_files.trust(path)
            if named:
                file.get(named)  # each run's settings name the network in the file
    return True


def _choices(override: str) -> Iterator[str]:
    """Yield the choices of a group's override, which may be a sweep."""
    found = read_by_hydra(override)
    if found is not None and found.is_sweep_override():
        yield from (each.strip("'\"") for each in found.sweep_string_iterator())
    elif found is not None:
        yield str(found.value())


def _store(choice: str) -> None:
    from hydra.core.config_store import ConfigStore

    from busso.cards.game import load_game
    from busso.cards.own.files import recipe_of_game
    from busso.command.settings.text import as_typed

    game = load_game(trust_game(choice))
    folder, _, name = choice.rpartition("/")
    parts = "/".join(["", *(part for part in folder.split("/") if part)])
    store = ConfigStore.instance()
    as_typed((), type(game.options), prefix="game.")
    own = dict(recipe_of_game(game.name))
    target = _target_of(game, own.pop("target", {}))
    recipe = _base_recipe(game)
    for key, value in own.items():
        recipe[key] = {**recipe.get(key, {}), **value} if isinstance(value, dict) else value
    store.store(group=f"game{parts}", name=name, node=group_of(game), package="game", provider="busso")
    store.store(group=f"target/{_LEARNER}{parts}", name=name, node=target, package="target", provider="busso")
    store.store(group=f"recipe/{_LEARNER}{parts}", name=name, node=recipe, package="_global_", provider="busso")


def _target_of(game: Game, settings: Any) -> dict[str, Any]:
    """Return the group `target` of a RECIPE; a variant defaults to the shipped game's. Raises SettingsError."""
    if not isinstance(settings, dict):
        raise SettingsError("RECIPE", f"target: expected a dictionary of settings, not {type(settings).__name__}")
    kind = settings.get("kind", _TARGET)
    check_one_of("RECIPE: target.kind", str(kind), *(path.stem for path in sorted((CONF / "target").glob("*.yaml"))))
    shipped = f"{_LEARNER}/{game.shown_as}"
    inherited = "kind" not in settings and (CONF / "target" / f"{shipped}.yaml").is_file()
    return {"defaults": [f"/target/{shipped if inherited else kind}@_here_", "_self_"], **settings}


def _base_recipe(game: Game) -> dict[str, Any]:
    """Return the recipe of the shipped game that this one varies, without the parts that the variant replaces."""
    from busso.cards.game import load_game

    shipped = f"recipe/{_LEARNER}/{game.shown_as}"
    if game.base is None or not (CONF / f"{shipped}.yaml").is_file():
        return {}
    found: dict[str, Any] = {"defaults": [f"/{shipped}@_global_", "_self_"]}
    origin = load_game(game.shown_as)
    if game.rewards is not origin.rewards:
        found["game"] = {"reward": next(iter(game.rewards))}
    kept = origin.policies.items() <= game.policies.items() and origin.kinds.items() <= game.kinds.items()
    if not kept:  # the recipe may name removed players
        found["evaluation"] = {"opponents": ["random"]}
        found["opponents"] = {"phases": [{"until": None, "mix": {"network": 1.0}}]}
    return found


def group_of(game: Game) -> dict[str, Any]:
    """Return the group `game` with the defaults of a game, and what divides rewards that are far from -1 to 1."""
    from busso.cards.own.files import most_paid  # imports NumPy, for which --help does not wait
    from busso.cards.packages import REWARD_SCALE

    most = most_paid(game.name)
    scale = {} if most is None else {REWARD_SCALE: most}
    return {"name": game.name, "reward": next(iter(game.rewards)), **scale, **asdict(game.options)}
