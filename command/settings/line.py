"""The command line that all commands of busso share: `key=value ...`, --cfg, --help and the other flags of Hydra."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from command.conf_folder import CONF, groups_of
from command.settings.as_hydra import add_flags, refuse_flags, search_path, with_values
from command.settings.compose import T, as_yaml, compose, show


@dataclass(frozen=True)
class CommandLine:
    """Hydra overrides, whether only the resulting settings are to be printed, and whether a grid is to be run."""

    config_name: str
    overrides: list[str]
    print_config: bool
    multirun: bool = False

    def compose(self, schema: type[T], default_game: str | None = None) -> T | None:
        """The settings; None where they were only to be printed, which is done then. Raises SettingsError.

        With a `default_game` the options of the game need no `game.`.
        """
        overrides = self.overrides
        if default_game is not None:
            from command.settings.game import with_game_options  # with NumPy, for which --help does not wait

            overrides = with_game_options(overrides, default_game, schema)
        settings = compose(schema, self.config_name, overrides)
        if not self.print_config:
            return settings
        print(as_yaml(settings), end="")
        return None


def parse(
    program: str,
    config_name: str,
    arguments: Sequence[str],
    example: str | None = None,
    multirun: bool = False,
    explanation: str | None = None,
) -> CommandLine:
    """Parse a command line; --help prints the settings with all groups. Exits on misuse.

    What --info and --shell-completion ask for is printed here, and ends the process. --help begins with `explanation`,
    a docstring, and an example. Raises SettingsError for flags of Hydra that mean nothing here.
    """
    parser = _Parser(program, config_name, explanation, example)
    found = parser.parse_intermixed_args(with_values(arguments))
    refuse_flags(found, multirun)
    overrides = [*search_path(found.config_dir, found.overrides), *found.overrides]
    if found.shell_completion is not None:
        from command.settings.completion_script import script_for

        print(script_for(found.shell_completion), end="")
        sys.exit(0)
    if found.info is not None:
        show(found.info, config_name, overrides)
        sys.exit(0)
    return CommandLine(config_name, overrides, found.cfg is not None or found.resolve, found.multirun)


class _Parser(argparse.ArgumentParser):
    """What --help prints is read from conf/ when it is asked for, since that takes as long as all else here."""

    def __init__(self, program: str, config_name: str, explanation: str | None, example: str | None) -> None:
        said = ([explanation.strip()] if explanation else []) + ([example_text(example)] if example else [])
        super().__init__(
            program,
            usage=f"{program} [key=value ...] [--cfg]",
            formatter_class=argparse.RawDescriptionHelpFormatter,
            description="\n\n".join(said) or None,
            allow_abbrev=False,
        )
        self._config_name = config_name
        self.add_argument("overrides", nargs="*", metavar="key=value", help="settings, as Hydra overrides")
        add_flags(self)

    def format_help(self) -> str:
        """With all settings and their comments below the flags."""
        self.epilog = _explained_settings(self._config_name)
        return super().format_help()


def _explained_settings(config_name: str) -> str:
    groups = "\n".join(
        f"  {folder.name:<12}{', '.join(sorted(path.stem for path in folder.glob('*.yaml')))}"
        for folder in sorted(CONF.iterdir())
        if folder.is_dir()
    )
    files = [CONF / f"{config_name}.yaml"]
    explained = dict.fromkeys(group for group in groups_of(files[0]) if group != "experiment")  # it sets keys of others
    files += [path for group in explained for path in sorted((CONF / group).glob("*.yaml"))]
    text = "\n".join(f"--- {path.relative_to(CONF.parent)}\n{path.read_text()}" for path in files)
    return f"config groups (group=choice):\n{groups}\n\nsettings:\n\n{text}"


def example_text(example: str) -> str:
    """A command that one can type, as --help of every command has it."""
    return f"example:\n  {example}"
