"""What every command of busso takes: `key=value ...`, --cfg and --help."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass

from train.config import CONF


@dataclass(frozen=True)
class CommandLine:
    """Hydra overrides, and whether only the resulting settings are to be printed."""

    overrides: list[str]
    print_config: bool


def parse(program: str, config_name: str, arguments: Sequence[str]) -> CommandLine:
    """Parse a command line; --help lists the config groups and prints conf/<config_name>.yaml. Exits on misuse."""
    groups = "\n".join(
        f"  {folder.name:<12}{', '.join(sorted(path.stem for path in folder.glob('*.yaml')))}"
        for folder in sorted(CONF.iterdir())
        if folder.is_dir()
    )
    text = (CONF / f"{config_name}.yaml").read_text()
    parser = argparse.ArgumentParser(
        program,
        usage=f"{program} [key=value ...] [--cfg]",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog=f"config groups (group=choice):\n{groups}\n\nsettings, from conf/{config_name}.yaml:\n\n{text}",
    )
    parser.add_argument("overrides", nargs="*", metavar="key=value", help="settings, as Hydra overrides")
    parser.add_argument("--cfg", action="store_true", help="print the settings that result, and stop")
    found = parser.parse_args(arguments)
    return CommandLine(found.overrides, found.cfg)
