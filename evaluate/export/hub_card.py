"""The card of an export, README.md in the form that model hubs read: YAML for machines, then Markdown for people.

The keys of the YAML are those of Hugging Face's model cards (https://huggingface.co/docs/hub/model-cards), which other
hubs read, too.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import yaml

from busso.command.settings.checks import SettingsError
from busso.evaluate.champion.card import facts, limits, results_table
from busso.evaluate.export.source import ONNX, ExportSource
from busso.evaluate.markdown import literal

FILE = "README.md"
_OWN = "library_name: busso"  # by which a card is known that may be written anew


def card(source: ExportSource, file: Path, layout: str, use: str, license_name: str) -> str:
    """The text of the card; `layout` explains the observation, `use` is the code that loads the file."""
    front = {
        "license": license_name,
        "library_name": "busso",
        "pipeline_tag": "reinforcement-learning",
        "tags": ["reinforcement-learning", "deep-reinforcement-learning", "dqn", "card-games", source.game.name, ONNX],
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
    yield from ("", *facts(source.found, file, game), "", "## Use", "", "```python", use.strip(), "```", "")
    none = ["Not measured: the run has no results of this network."]
    yield from ("## Results", "", *(results_table(source.results, game) if source.results else none), "")
    yield from ("## Limits", "", *limits(source.found, game), "")
    yield from ("## What it sees", "", "```text", layout, "```", "")
    names = ", ".join(f"{action} {game.action_text(action)}" for action in range(game.actions))
    yield from ("## Actions", "", f"{names}.")
