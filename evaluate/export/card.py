"""Model card of an export, README.md: YAML for model hubs, then Markdown.

The keys of the YAML are those of Hugging Face's model cards (https://huggingface.co/docs/hub/model-cards), which other
hubs read, too.
"""

import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import yaml

from busso.base.terminal import code, literal, one_line
from busso.cards.compiled.bits import WORD
from busso.cards.duplicate import decimals, meaning_of_won
from busso.cards.packages import typed_game
from busso.command.settings.checks import SettingsError
from busso.command.settings.quoting import value_text
from busso.evaluate.export.source import PACKED, ExportSource
from busso.train.run.results import INTERVAL

FILE = "README.md"
_OWN = "library_name: busso"  # by which a card is known that may be written anew
_FACTS = ("reward", "command", "commit", "hours")  # of `about`, in this order
_CARD = """\
---
{front}---

# {title}

A network that plays {game}, learned by deep Q-learning with busso: from what a seat sees to a value
for each of {actions} actions.

| | |
|---|---|
| game | {game}: {options} |
| network | {network} |
| file | `{file}`, {megabytes:.2f} MB, of busso {version} |
| decisions | {decisions} |
{facts}
## Use

```python
{use}
```

## Results

{results}

## Limits

* It learned under the options above and knows no others; a table where that matters refuses it.
* It chooses by values that a network has learned, without looking ahead.
{limits}"""
_USE_ONNX = """\
import json, pathlib
import numpy as np, onnxruntime

about = json.loads(pathlib.Path("model.onnx.json").read_text())  # the meaning of each bit and action, and a check
session = onnxruntime.InferenceSession("model.onnx")
bits = np.zeros((1, {size}), np.uint8)  # what a seat sees
bits[0, about["check"]["bits"]] = 1  # here an observation whose values are known
values = session.run(["values"], {{"observation": {observation}}})[0]
print(abs(values - about["check"]["values"]).max())  # at most 0.00001 in float32; above 0.02 it is a fault
legal = np.ones((1, {actions}), bool)  # the actions that it may take
action = np.where(legal, values, -np.inf).argmax(1)"""
_USE_BUSSO = """\
import busso

game = busso.load_game({game})
player = busso.load_player(game, "./"{network})  # the folder of this file
print(busso.duel(game, player, "random", deals=64).win_rate)"""


def check_free(folder: Path) -> None:
    """Raise SettingsError for a README.md that no export has written."""
    path = folder / FILE
    if path.exists() and _OWN not in path.read_text(encoding="utf-8", errors="replace").splitlines():
        raise SettingsError(
            "to", f"{path} was not written by an export, which would overwrite it", "name another folder"
        )


def card(source: ExportSource, file: Path, form: str | None, license_name: str) -> str:
    """Return the text of the card of a file. `form` is that of the observations of ONNX, None for a file for busso."""
    game, found, about = source.game, source.found, source.found.about
    tags = ["reinforcement-learning", "deep-reinforcement-learning", "dqn", "card-games", game.name, file.suffix[1:]]
    front = {"license": license_name, "library_name": "busso", "pipeline_tag": tags[0], "tags": tags}
    network = found.settings.network
    as_input = {"size": game.bits, "observation": "bits.astype(np.float32)"}
    if form == PACKED:
        as_input = {"size": WORD * game.words, "observation": 'np.packbits(bits, 1, "little").view("<u8")'}
    return _CARD.format(
        front=yaml.safe_dump(front, sort_keys=False, allow_unicode=True, width=1000),
        title=literal(source.title),
        game=game.name,
        actions=game.actions,
        options=", ".join(f"{key}={value_text(value)}" for key, value in asdict(game.options).items()),
        network=code(network.module) if network.module else f"hidden layers {list(network.hidden)}",
        file=file.name,
        megabytes=file.stat().st_size / 1e6,
        version=literal(found.version),
        decisions=", ".join(f"{count:,}" for count in about.get("decisions") or []) or "not known",
        facts="".join(f"| {key} | {code(about[key])} |\n" for key in _FACTS if about.get(key)),
        use=_in_busso(source) if form is None else _USE_ONNX.format(actions=game.actions, **as_input),
        results="\n".join(_results(source)),
        limits=f"* {literal(one_line(about['limits']))}\n" if about.get("limits") else "",
    )


def _results(source: ExportSource) -> Iterator[str]:
    """Yield a table of games won and results against each player, and the definition of won."""
    unit = source.game.unit
    if not source.results:
        yield "Not measured: there are no results of this network."
        return
    yield f"| against | deals | games won | 95% interval | {unit} more | 95% interval |"
    yield "|---|---|---|---|---|---|"
    for name, result in source.results.items():
        (won, _), (low, high), (more, half) = (result[key] for key in ("win_rate", "win_rate" + INTERVAL, unit))
        places = decimals(half)
        share = f"{won:.1%} | {100 * low:.1f} to {high:.1%}"
        yield f"| {code(name)} | {result['deals']:,} | {share} | {more:+.{places}f} | ± {half:.{places}f} |"
    yield from ("", f"Duplicate deals, single games; {meaning_of_won(source.game)}.")


def _in_busso(source: ExportSource) -> str:
    settings, options = source.found.settings, source.game.options
    defaults = asdict(type(options)())
    given = [f", {key}={_python(value)}" for key, value in asdict(options).items() if value != defaults[key]]
    module = settings.network.module
    network = f", network={_python(module.partition(':')[0])}" if module else ""
    return _USE_BUSSO.format(game=_python(typed_game(settings.game_name)) + "".join(given), network=network)


def _python(value: object) -> str:
    """Return the value as Python code, with strings in double quotes."""
    return json.dumps(value) if isinstance(value, str) else repr(value)
