"""The card of an export, README.md in the form that model hubs read: YAML for machines, then Markdown for people.

The keys of the YAML are those of Hugging Face's model cards (https://huggingface.co/docs/hub/model-cards), which other
hubs read, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import yaml

from busso.cards.game import Game
from busso.cards.matches.duplicate import decimals, meaning_of_won
from busso.command.settings.checks import SettingsError
from busso.command.settings.overrides import value_text
from busso.command.terminal.visible import one_line
from busso.evaluate.export.source import ExportSource
from busso.evaluate.markdown import code, literal
from busso.train.dqn.players.champion_file import Champion
from busso.train.run.results import INTERVAL

FILE = "README.md"
_OWN = "library_name: busso"  # by which a card is known that may be written anew
_UNKNOWN = "not known"


def card(source: ExportSource, file: Path, form: str, layout: str, use: str, license_name: str) -> str:
    """The text of the card of a file in the format `form`.

    `layout` explains the observation where others must know it, `use` is the code that loads the file.
    """
    front = {
        "license": license_name,
        "library_name": "busso",
        "pipeline_tag": "reinforcement-learning",
        "tags": ["reinforcement-learning", "deep-reinforcement-learning", "dqn", "card-games", source.game.name, form],
    }
    written = yaml.safe_dump(front, sort_keys=False, allow_unicode=True, width=1000)
    return "---\n" + written + "---\n\n" + "\n".join(_lines(source, file, layout, use)) + "\n"


def check_free(folder: Path) -> None:
    """Raise SettingsError where a README.md lies that no export has written."""
    path = folder / FILE
    if (
        path.exists()
        and _OWN not in path.read_text(encoding="utf-8", errors="replace").partition("\n---\n")[0].splitlines()
    ):
        raise SettingsError("to", f"{path} is not the card of an export, which takes this name", "name another folder")


def _lines(source: ExportSource, file: Path, layout: str, use: str) -> Iterator[str]:
    game = source.game
    yield f"# {literal(source.title)}"
    yield ""
    yield f"A network that plays {game.name}, learned by deep Q-learning with busso: from what a seat sees to a value"
    yield f"for each of {game.actions} actions."
    yield from ("", *_facts(source.found, file, game), "", "## Use", "", "```python", use.strip(), "```", "")
    none = ["Not measured: there are no results of this network."]
    yield from ("## Results", "", *(_results_table(source.results, game) if source.results else none), "")
    yield from ("## Limits", "", *_limits(source.found, game))
    if layout:
        names = ", ".join(f"{action} {game.action_text(action)}" for action in range(game.actions))
        yield from ("", "## What it sees", "", "```text", layout, "```", "", "## Actions", "", f"{names}.")


def _facts(found: Champion, file: Path, game: Game) -> Iterator[str]:
    """A table of what the file is and how it came about."""
    about = found.about
    decisions = about.get("decisions") or []
    options = ", ".join(f"{key}={value_text(value)}" for key, value in asdict(game.options).items())
    network = found.settings.network
    shape = code(network.module) if network.module else f"hidden layers {list(network.hidden)}"
    rows = {
        "game": f"{game.name}: {options}",
        "reward learned": literal(about.get("reward") or _UNKNOWN),
        "network": shape,
        "file": f"`{file.name}`, {file.stat().st_size / 1e6:.2f} MB, of busso {literal(found.version)}",
        "command": code(about["command"]) if about.get("command") else _UNKNOWN,
        "commit": literal(about.get("commit") or _UNKNOWN),
        "decisions": ", ".join(f"{count:,}" for count in decisions) or _UNKNOWN,
        "hours": f"{about['hours']:g}" if about.get("hours") is not None else _UNKNOWN,
    }
    yield from ("| | |", "|---|---|")
    yield from (f"| {name} | {text} |" for name, text in rows.items())


def _results_table(results: Mapping[str, Any], game: Game) -> Iterator[str]:
    """Games won and the result against each player, and what counts as won."""
    unit = game.unit
    yield f"| against | deals | games won | 95% interval | {unit} more | 95% interval |"
    yield "|---|---|---|---|---|---|"
    for name, result in results.items():
        won, _ = result["win_rate"]
        low, high = result["win_rate" + INTERVAL]
        more, half = result[unit]
        places = decimals(half)
        share = f"{won:.1%} | {100 * low:.1f} to {high:.1%}"
        yield f"| {code(name)} | {result['deals']:,} | {share} | {more:+.{places}f} | ± {half:.{places}f} |"
    yield from ("", f"Duplicate deals, single games; {meaning_of_won(game)}.")


def _limits(found: Champion, game: Game) -> Iterator[str]:
    """List the limits of the network."""
    yield f"* It knows the options above only; a table with other options refuses it{_but(game)}."
    yield "* It chooses by values that a network has learned, without looking ahead."
    if found.about.get("limits"):
        yield f"* {literal(one_line(found.about['limits']))}"


def _but(game: Game) -> str:
    """Other options under which it may sit."""
    learned = [name for name in game.additions if getattr(game.options, name)]
    unseen = [name for name in game.additions if name not in learned]
    but = [f"any {each.name}" for each in fields(game.options) if not each.compare]
    but += [f"{name}=true, where it does not see what is added" for name in unseen]
    but += [f"{name}=false" for name in learned]
    return f", but for {' and '.join(but)}" if but else ""
