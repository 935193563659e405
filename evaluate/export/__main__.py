"""`busso export run=runs/tressette/default`: write a network to a file for other programs, or for busso.

For others it is ONNX, which onnxruntime reads, compared with the network before it replaces an older file. With
format=safetensors it is a file for busso, which runs no code when it is read. A model card is written beside it.

example:
  busso export run=champion game=spike input=bits to=spike-agent
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from busso.cards.base.files import replacing, write_atomic
from busso.cards.player_specs import CHAMPION_FILE
from busso.command.app import settings_command, typed
from busso.command.settings.checks import SettingsError, check_one_of
from busso.command.settings.game import load_configured_game
from busso.command.settings.overrides import given
from busso.evaluate.export import hub_card
from busso.evaluate.export.agreement import ROWS, Agreement, agreement, observations
from busso.evaluate.export.source import BITS, ONNX, PACKED, ExportSource, open_source
from busso.evaluate.export.usage import layout_of, usage, usage_in_busso
from busso.train.dqn.players import champion_file as champion
from busso.train.run import results

ONNX_FILE = "model.onnx"
SAFETENSORS = "safetensors"


@dataclass
class ExportSettings:
    """The settings of `busso export`; conf/export.yaml explains them."""

    game: dict[str, Any]
    run: str = "champion"
    format: str = ONNX
    input: str = PACKED
    to: str | None = None
    license: str = "unknown"
    limits: str | None = None

    def __post_init__(self) -> None:
        check_one_of("format", self.format, ONNX, SAFETENSORS)
        check_one_of("input", self.input, PACKED, BITS)
        if self.to is not None and Path(self.to).suffix in (f".{ONNX}", champion.SUFFIX):
            raise SettingsError("to", f"a folder, for the file and its card, not {self.to}")


@dataclass(frozen=True)
class Exported:
    """The file that was written and, of ONNX, how it agrees with the network."""

    file: Path
    checked: Agreement | None


@settings_command(ExportSettings, "export")
def main(settings: ExportSettings) -> None:
    """Run the command."""
    keys = given(typed())
    if option := next((key for key in keys if key.startswith("game.")), None):
        raise SettingsError(option, "a network is exported with the options that it was trained with", "leave it out")
    done = export(settings, "game" in keys)
    agrees = f" agrees with the network: {done.checked}" if done.checked else ""
    print(f"{done.file} ({done.file.stat().st_size / 1e6:.2f} MB){agrees}")
    print(f"its card: {done.file.parent / hub_card.FILE}")


def export(settings: ExportSettings, game_is_named: bool = False) -> Exported:
    """Write the file and its card; an ONNX file is there only if it does what the network does.

    `game_is_named`: a network of another game than that of the settings is refused. Raises SettingsError,
    CheckpointError, and ExportError where the file does something else.
    """
    if settings.format == ONNX:
        _check_packages()
    source = open_source(settings.run, load_configured_game(settings.game), settings.limits)
    if game_is_named and source.game.name != settings.game["name"]:
        raise SettingsError(
            "game", f"{settings.run} plays {source.game.name}, not {settings.game['name']}", "leave it out"
        )
    folder = Path(settings.to) if settings.to else source.beside / settings.format
    hub_card.check_free(folder)
    folder.mkdir(parents=True, exist_ok=True)
    if settings.format == ONNX:
        done = _as_onnx(folder / ONNX_FILE, source, settings)
        layout, use = layout_of(source.game), usage(source, settings.input)
    else:
        found, done = source.found, Exported(folder / CHAMPION_FILE, None)
        champion.write(done.file, found.settings, found.weights, found.about, found.version)
        results.write(folder, source.results)
        layout, use = "", usage_in_busso(source)
    text = hub_card.card(source, done.file, settings.format, layout, use, settings.license)
    write_atomic(folder / hub_card.FILE, text)
    return done


def _as_onnx(file: Path, source: ExportSource, settings: ExportSettings) -> Exported:
    from busso.evaluate.export import onnx_file

    with replacing(file) as temporary:
        onnx_file.write(temporary, source, settings.input)
        values = onnx_file.values_of(temporary, source.game, settings.input)
        return Exported(file, agreement(source.network, values, *observations(source.game, ROWS)))


def _check_packages() -> None:
    try:
        import onnx  # noqa: F401
        import onnxruntime  # noqa: F401
        import onnxscript  # noqa: F401 - by which PyTorch writes ONNX
    except ImportError as error:
        raise SettingsError(
            "export",
            f"ONNX needs the package {error.name}",
            "in a clone: .venv/bin/pip install -c constraints.txt -e '.[export]'",
        ) from None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
