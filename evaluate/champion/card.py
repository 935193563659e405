"""The card of a champion: what it is, how it was trained, what it won, what it cannot do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from busso.cards.game import Game
from busso.cards.matches.duplicate import decimals, meaning_of_won
from busso.command.settings.overrides import value_text
from busso.command.terminal.visible import one_line
from busso.evaluate.markdown import code, literal
from busso.train.dqn.players.champion_file import Champion
from busso.train.run.results import INTERVAL

_UNKNOWN = "not known"


def card(found: Champion, file: Path, game: Game, results: Mapping[str, Any], command: str) -> str:
    """Markdown; `results` are as in results.json, and `command` measures them again."""
    title = f"# The champion of {game.name}{_beside_defaults(game)}"
    lines = (title, "", *facts(found, file, game), "", "## Results", "")
    measured = (*results_table(results, game), "Measured by", "", "```", command, "```", "")
    return "\n".join((*lines, *measured, "## Limits", "", *limits(found, game))) + "\n"


def results_table(results: Mapping[str, Any], game: Game) -> Iterator[str]:
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


def facts(found: Champion, file: Path, game: Game) -> Iterator[str]:
    """A table of what the file is and how it came about."""
    about = found.about
    decisions = about.get("decisions") or []
    options = ", ".join(f"{key}={value_text(value)}" for key, value in asdict(game.options).items())
    networks = len(found.networks)
    network = found.settings.network
    shape = code(network.module) if network.module else f"hidden layers {list(network.hidden)}"
    rows = {
        "game": f"{game.name}: {options}",
        "reward learned": literal(about.get("reward") or _UNKNOWN),
        "network": shape if networks == 1 else f"{networks} networks, one of which is drawn for each game; {shape}",
        "file": f"`{file.name}`, {file.stat().st_size / 1e6:.2f} MB, of busso {literal(found.version)}",
        "command": code(about["command"]) if about.get("command") else _UNKNOWN,
        "commit": literal(about.get("commit") or _UNKNOWN),
        "decisions": ", ".join(f"{count:,}" for count in decisions) or _UNKNOWN,
        "hours": f"{about['hours']:g}" if about.get("hours") is not None else _UNKNOWN,
    }
    yield from ("| | |", "|---|---|")
    yield from (f"| {name} | {text} |" for name, text in rows.items())


def _beside_defaults(game: Game) -> str:
    """The options that differ from the defaults, for a title."""
    defaults = asdict(type(game.options)())
    other = {key: value for key, value in asdict(game.options).items() if value != defaults[key]}
    return "".join(f", {key}={value_text(value)}" for key, value in other.items())


def _but(game: Game) -> str:
    """Other options under which it may sit."""
    learned = [name for name in game.additions if getattr(game.options, name)]
    unseen = [name for name in game.additions if name not in learned]
    but = [f"any {each.name}" for each in fields(game.options) if not each.compare]
    but += [f"{name}=true, where it does not see what is added" for name in unseen]
    but += [f"{name}=false" for name in learned]
    return f", but for {' and '.join(but)}" if but else ""


def limits(found: Champion, game: Game) -> Iterator[str]:
    """What it cannot do, as a list."""
    yield f"* It knows the options above only; a table with other options refuses it{_but(game)}."
    yield "* It chooses by values that a network has learned, without looking ahead."
    if len(found.networks) > 1:
        yield "* Who knows that several networks take turns, game by game, may learn in a game which one plays."
    if found.about.get("limits"):
        yield f"* {literal(one_line(found.about['limits']))}"
