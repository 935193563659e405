"""`busso solve game=sette_mezzo player=2 opponent=6 limit=5`: solve a small game exactly.

example:
  busso solve game=blackjack decks=1 player=[9,7] opponent=10
"""

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from busso.base.files import write_csv
from busso.cards.mdp import HandEndedError, Model
from busso.command.app import settings_command
from busso.command.console import Progress, as_json
from busso.command.settings.checks import SettingsError
from busso.evaluate.solve.solution import Solved, advice, game_text, hands_text, solve, state_rows


@dataclass
class SolveSettings:
    """Settings of `busso solve`; documented in conf/solve.yaml."""

    game: dict[str, Any]
    player: Any
    opponent: Any
    interactive: bool
    table: str | None
    folder: str | None

    def __post_init__(self) -> None:
        if (self.player is None) != (self.opponent is None):
            missing = "opponent" if self.opponent is None else "player"
            raise SettingsError(missing, "missing", "give both player and opponent or neither")

    @property
    def player_cards(self) -> list[str]:
        """Cards of the player; a single card need not be in a list."""
        return [str(card) for card in self.player] if isinstance(self.player, list) else [str(self.player)]


@settings_command(SolveSettings, "solve", default_game="sette_mezzo")
def main(settings: SolveSettings) -> None:
    """Run the dialogue, compare a table, list the hands that follow from a start, or print the whole solution."""
    with Progress("solving", None, "rounds") as progress:
        solved = solve(settings.game, progress.update)
    if settings.interactive:
        try:
            converse(solved, settings)
        except EOFError:
            print()
    elif settings.table is not None:
        from busso.evaluate.solve.compare import compare  # deferred: imports PyTorch

        compare(solved, Path(settings.table), settings.folder)
    elif settings.player is not None:
        state = _located(solved.model, settings.player_cards, str(settings.opponent))
        if not as_json(json.dumps(state_rows(solved, state), indent=2)):
            print("\n".join(hands_text(solved, state)))
    else:
        rows = state_rows(solved)
        if not as_json(json.dumps(rows, indent=2)):
            print("\n".join(game_text(solved)))
        from busso.evaluate.solve.plots import draw, make_folder

        folder = make_folder(settings.folder or f"runs/{solved.game.name}/exact")
        write_csv(folder / "states.csv", rows)
        for layout in solved.model.layouts:
            draw(solved, layout, solved.solution.values, solved.solution.policy, folder, "optimal")
        print(f"written to {folder}", file=sys.stderr)


def _located(model: Model, player: Sequence[str], opponent: str) -> int:
    try:
        return model.locate(player, opponent)
    except (HandEndedError, ValueError) as error:
        raise SettingsError("player, opponent", error) from None


def converse(solved: Solved, settings: SolveSettings) -> None:
    """Ask for cards and print the advice after each, until the end of the hand. Raises EOFError if the input ends."""
    model = solved.model
    if settings.player is not None:
        player, opponent = settings.player_cards, str(settings.opponent)
        _located(model, player, opponent)
    else:
        which = ["your card"] if model.first_cards == 1 else [f"your card {k + 1}" for k in range(model.first_cards)]
        player = [_ask_card(model, text) for text in which]
        opponent = _ask_card(model, "the opponent's card")
    while True:
        try:
            state = model.locate(player, opponent)
        except HandEndedError as end:
            print(end)
            return
        except ValueError as error:
            print(f"{error}; try again")
            player[-1] = _ask_card(model, "the card drawn")
            continue
        print(advice(solved, state))
        if solved.ends(state):
            return
        player.append(_ask_card(model, "the card drawn"))


def _ask_card(model: Model, which: str) -> str:
    while True:
        text = input(f"{which}: ").strip()
        try:
            model.parse_card(text)
        except ValueError as error:
            print(f"{error}; try again")
        else:
            return text


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
