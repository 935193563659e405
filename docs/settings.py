"""Generator of docs/reference/settings.md from conf/ and its comments: `make settings-page`."""

import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, is_dataclass
from itertools import takewhile
from pathlib import Path
from typing import Any, get_args, get_type_hints

import yaml

from busso.base.bounds import bounds_of
from busso.cards.game import load_game
from busso.command.conf_folder import own_games
from busso.evaluate.compare import CompareSettings
from busso.evaluate.export.__main__ import ExportSettings
from busso.evaluate.report.__main__ import ReportSettings
from busso.evaluate.review.settings import ReviewSettings
from busso.evaluate.solve.__main__ import SolveSettings
from busso.evaluate.tournament.settings import TournamentSettings
from busso.play.table.settings import PlaySettings
from busso.train.settings.dqn import Targets, TrainSettings
from busso.train.settings.tabular import BatchQSettings, TabularSettings
from busso.train.tune.settings import TuneSettings

ROOT = Path(__file__).resolve().parent.parent
CONF = ROOT / "conf"
PAGE = ROOT / "docs" / "reference" / "settings.md"

_KEY = re.compile(r"(?P<indent> *)(?P<key>\w+):(?: +(?P<value>[^#\s](?:[^#]|#(?! ))*?)?)?(?: +# (?P<says>.*))?")
_SKIPPED = ("defaults", "hydra", "opponents.phases", "algo", "kind")  # described in a paragraph, groups, or Hydra's own

# Settings classes by file name in conf/: of the three kinds of runs, then of the other commands.
SCHEMAS: dict[str, type[Any]] = {
    "train": TrainSettings,
    "q_learning": TabularSettings,
    "batch_q_learning": BatchQSettings,
    "tournament": TournamentSettings,
    "review": ReviewSettings,
    "solve": SolveSettings,
    "play": PlaySettings,
    "report": ReportSettings,
    "compare": CompareSettings,
    "export": ExportSettings,
    "tune": TuneSettings,
}
TABLES = (
    ("q_learning", "tables of the small games"),
    ("batch_q_learning", "tables of Corellian Spike, by batches of self-play"),
)


PHASES = (
    "`opponents.phases` names the players at the table during training: a list of "
    "`{until: EPISODE, each: seat, mix: {player: probability}}`, the last with `until: null`. `network` is the network "
    "that learns; others are named as in `evaluation.opponents`. "
    "`each: seat` draws a player for each seat. `each: side` draws one player for all seats but those of one side; the "
    "network has that side and learns from its decisions only."
)


@dataclass(frozen=True)
class Key:
    """A setting in a file: dotted name, value as written, and comment."""

    name: str
    value: str
    says: str


def keys_of(path: Path, prefix: str = "") -> list[Key]:
    """Return the settings of a file in conf/, in order, each with the comment on its line."""
    found: list[Key] = []
    above: list[tuple[int, str]] = []  # indents and names of the enclosing groups
    for line in path.read_text().splitlines():
        match = _KEY.fullmatch(line)
        if match is None or line.lstrip().startswith("-"):
            continue
        indent = len(match["indent"])
        above = [group for group in above if group[0] < indent]
        name = ".".join([*(group for _, group in above), match["key"]])
        if match["value"] is None:
            above.append((indent, match["key"]))
        if name.startswith(_SKIPPED):
            continue
        if match["value"] is not None or match["says"]:
            found.append(Key(prefix + name, match["value"] or "", match["says"] or ""))
    return found


def heading(path: Path) -> str:
    """Return the comment at the top of a file as one paragraph."""
    lines = takewhile(lambda line: line.startswith("#"), path.read_text().splitlines())
    comments = [line[2:] for line in lines if not line.startswith("# @package")]
    return " ".join(comments)


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield the lines of a Markdown table."""
    yield "| " + " | ".join(header) + " |"
    yield "|" + "---|" * len(header)
    for row in rows:
        yield "| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |"


def settings_table(keys: Sequence[Key], schema: type[Any], group: str = "") -> Iterator[str]:
    """Yield a table of key, default, range and meaning; `schema` is the class of `group` if that is named."""
    own = f"{group}." if group else ""
    ranges = [bounds(schema, key.name.removeprefix(own)) for key in keys]
    values = [f"`{key.value}`" if key.value else "" for key in keys]
    rows = [(f"`{key.name}`", *both, key.says) for key, *both in zip(keys, values, ranges, strict=True)]
    yield from table(("key", "default", "range", "meaning"), rows)


def bounds(schema: type[Any], key: str) -> str:
    """Return the range of a number; empty for other settings."""
    *groups, name = key.split(".")
    for group in groups:
        schema = get_type_hints(schema)[group]
    found = bounds_of(schema).get(name) if is_dataclass(schema) else None  # the keys of a dictionary have none
    return "" if found is None else str(found).removeprefix("an integer from ")


def choices(group: str, sign: str = "") -> Iterator[str]:
    """Yield a table of a config group's files with their headings; `sign` is Hydra's prefix, as `+`."""
    rows = [(f"`{sign}{group}={path.stem}`", heading(path)) for path in sorted((CONF / group).glob("[!_]*.yaml"))]
    yield from table(("choice", "what it is"), rows)


def recipes() -> Iterator[str]:
    """Yield a table of target and recipe settings with one column per game."""
    paths = sorted((CONF / "recipe" / "dqn").glob("*.yaml"))
    values = {path.stem: _target(path.stem) | _flat(yaml.safe_load(path.read_text()) or {}) for path in paths}
    names = list(dict.fromkeys(key for found in values.values() for key in found))
    rows = [(f"`{name}`", *(_as_written(found.get(name)) for found in values.values())) for name in names]
    yield from table(("key", *values), rows)


def _target(game: str) -> dict[str, object]:
    """Return a game's default choice in the group `target` and its overrides there."""
    values = yaml.safe_load((CONF / "target" / "dqn" / f"{game}.yaml").read_text())
    choice = values.pop("defaults")[0].removeprefix("/target/").partition("@")[0]
    return {"target": choice, **_flat(values, "target.")}


def _as_written(value: object) -> str:
    """Format a value as on a command line; empty for None."""
    if value is None:
        return ""
    text = yaml.safe_dump(value, default_flow_style=True, sort_keys=False, width=1000)
    return f"`{text.removesuffix('...' + chr(10)).strip()}`"


def _flat(values: dict[str, object], prefix: str = "") -> dict[str, object]:
    found: dict[str, object] = {}
    for key, value in values.items():
        found |= _flat(value, f"{prefix}{key}.") if isinstance(value, dict) else {prefix + key: value}
    return found


def page() -> Iterator[str]:
    """Yield the lines of docs/reference/settings.md."""
    yield from (
        "# Settings",
        "",
        "Generated by `make settings-page` from the comments in `conf/`; change them there. Every key can be given on",
        "the command line, as [Hydra overrides](https://hydra.cc/docs/advanced/override_grammar/basic/):",
        "`learner.lr=1e-4`. `--cfg job` prints the settings that result and stops.",
        "",
        "## Training a network: `busso train`",
        "",
    )
    yield from settings_table(keys_of(CONF / "train.yaml"), TrainSettings)
    yield from ("", "### `algo=dqn`", "")
    yield from settings_table(keys_of(CONF / "algo" / "dqn.yaml"), TrainSettings)
    yield from (
        "",
        PHASES,
        "",
        "### Recipes",
        "",
        "The best known settings of each game override these defaults; `target=CHOICE` has the values of its table:",
        "",
    )
    yield from recipes()
    for schema in get_args(Targets):
        path = CONF / "target" / f"{schema.kind}.yaml"
        yield from ("", f"### `target={path.stem}`", "", heading(path), "")
        yield from settings_table(keys_of(path, "target."), schema, "target")
    for path in sorted((CONF / "rollout").glob("*.yaml")):
        yield from ("", f"### `rollout={path.stem}`", "", heading(path))
        if keys := keys_of(path, "rollout."):
            yield from ("", *settings_table(keys, TrainSettings))
    yield from ("", "## Games", "")
    for name in own_games():
        yield from (f"### `game={name}`", "")
        options, keys = type(load_game(name).options), keys_of(CONF / "game" / f"{name}.yaml", "game.")
        yield from settings_table([key for key in keys if key.name != "game.name"], options, "game")
        yield ""
    yield from ("## Experiments", "")
    yield from choices("experiment")
    yield from ("", "## Rows: what a part of Tressette's recipe is worth", "")
    yield from choices("row")
    yield from ("", "## Learning in tables", "")
    for name, title in TABLES:
        yield from (f"### {title[0].upper()}{title[1:]}", "", heading(CONF / "algo" / f"{name}.yaml"), "")
        yield from settings_table(keys_of(CONF / "algo" / f"{name}.yaml"), SCHEMAS[name])
        yield ""
    yield from choices("algo")
    for name in [*SCHEMAS][3:]:
        yield from ("", f"## `busso {name}`", "", heading(CONF / f"{name}.yaml"), "")
        yield from settings_table(keys_of(CONF / f"{name}.yaml"), SCHEMAS[name])
    yield ""
    yield from choices("search", "+")


def main() -> int:
    """Write the page."""
    PAGE.write_text("\n".join(page()) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
