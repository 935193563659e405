"""`busso export run=runs/tressette/default`: write a network to a file for other programs, or for busso.

For other programs the file is ONNX; it is compared with the network before it replaces an older file. With
format=safetensors it is for busso, and loading it runs no code. A model card is written beside it.

example:
  busso export run=champion game=spike to=spike-agent
"""

import json
import sys
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from busso.base.files import write_atomic
from busso.cards.player_specs import CHAMPION_FILE
from busso.command.app import settings_command, typed
from busso.command.settings.checks import SettingsError, check_one_of
from busso.command.settings.game import load_configured_game
from busso.command.settings.quoting import given
from busso.evaluate.export import card
from busso.evaluate.export.source import BITS, PACKED, open_source
from busso.train.players import champion_file as champion
from busso.train.run import results

ONNX, SAFETENSORS = "onnx", "safetensors"
ROWS = 10_000  # on which an ONNX file is compared with the network


@dataclass
class ExportSettings:
    """The settings of `busso export`; conf/export.yaml explains them."""

    game: dict[str, Any]
    run: str
    format: str
    input: str
    to: str | None
    license: str
    limits: str | None

    def __post_init__(self) -> None:
        check_one_of("format", self.format, ONNX, SAFETENSORS)
        check_one_of("input", self.input, PACKED, BITS)
        if self.to is not None and Path(self.to).suffix in (f".{ONNX}", champion.SUFFIX):
            raise SettingsError("to", f"a folder, for the file and its card, not {self.to}")


@settings_command(ExportSettings, "export")
def main(settings: ExportSettings) -> None:
    """Run the command."""
    keys = given(typed())
    if option := next((key for key in keys if key.startswith("game.")), None):
        raise SettingsError(option, "a network is exported with the options that it was trained with", "leave it out")
    file, apart = export(settings, "game" in keys)
    print(f"{file} ({file.stat().st_size / 1e6:.2f} MB)")
    if apart is not None:
        print(f"values: within {apart:.1e} of the network's, on {ROWS:,} observations")
    print(f"card: {file.parent / card.FILE}")


def export(settings: ExportSettings, game_is_named: bool = False) -> tuple[Path, float | None]:
    """Write the file and its card; return the file and, for ONNX, the largest difference from the network's values.

    With `game_is_named`, a network of another game than the settings' is refused. Raises SettingsError, CheckpointError
    and, leaving no new file, ExportError if the export fails or its values differ from the network's.
    """
    _check_packages(settings.format)
    source = open_source(settings.run, load_configured_game(settings.game))
    found, game = source.found, source.game.name
    if game_is_named and game != settings.game["name"]:
        raise SettingsError("game", f"{settings.run} plays {game}, not {settings.game['name']}", "leave it out")
    if settings.limits:
        found.about["limits"] = settings.limits
    folder = Path(settings.to) if settings.to else source.beside / settings.format
    card.check_free(folder)
    folder.mkdir(parents=True, exist_ok=True)
    if settings.format == ONNX:
        from busso.evaluate.export import onnx_file

        file, form = folder / "model.onnx", settings.input
        model = onnx_file.model_of(source, form)
        exported = onnx_file.values_of(model, source.game, form)
        apart = onnx_file.difference(source.network, exported, onnx_file.observations(source.game, ROWS))
        write_atomic(file, model)
        # For JavaScript, whose onnxruntime does not give the metadata of a model.
        write_atomic(folder / f"{file.name}.json", json.dumps(onnx_file.metadata(source, form)) + "\n")
    else:
        file, form, apart = folder / CHAMPION_FILE, None, None
        champion.write(file, found.settings, found.weights, found.about, found.version)
        results.write(folder, source.results)
    write_atomic(folder / card.FILE, card.card(source, file, form, settings.license))
    return file, apart


def _check_packages(form: str) -> None:
    needed = ("onnx", "onnxruntime", "onnxscript") if form == ONNX else ()  # PyTorch writes ONNX by onnxscript
    if missing := next((name for name in needed if find_spec(name) is None), None):
        hint = "in a clone: .venv/bin/pip install -c constraints.txt -e '.[export]'"
        raise SettingsError("export", f"ONNX needs the package {missing}", hint)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
