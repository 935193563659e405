"""The card of a champion: what it is, how it came about, what it won, what it cannot do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path

from cards.game import Game
from cards.matches.duplicate import Duel, decimals, meaning_of_won
from command.terminal.visible import one_line
from evaluate.markdown import code, literal
from train.dqn.players.champion_file import Champion

_UNKNOWN = "not known"


def card(found: Champion, file: Path, game: Game, duels: Mapping[str, Duel], command: str) -> str:
    """Markdown; `command` measures it again."""
    return "\n".join(_lines(found, file, game, duels, command)) + "\n"


def _lines(found: Champion, file: Path, game: Game, duels: Mapping[str, Duel], command: str) -> Iterator[str]:
    yield from (f"# The champion of {game.name}", "", *facts(found, file, game))
    yield from (
        "",
        "## Results",
        "",
        f"| against | deals | games won | 95% interval | {game.unit} more | 95% interval |",
    )
    yield "|---|---|---|---|---|---|"
    for name, duel in duels.items():
        won, more = duel.win_rate, duel.points
        places = decimals(more.half_width)
        interval = f"{100 * won.low:.1f} to {won.high:.1%}"
        margin = f"{more.mean:+.{places}f} | ± {more.half_width:.{places}f}"
        yield f"| {code(name)} | {duel.wins.size:,} | {won.mean:.1%} | {interval} | {margin} |"
    yield from ("", f"Duplicate deals, single games; {meaning_of_won(game)}. Measured by", "", "```", command, "```")
    yield from ("", "## Limits", "", *limits(found, game))


def facts(found: Champion, file: Path, game: Game) -> Iterator[str]:
    """A table of what the file is and how it came about."""
    about = found.about
    decisions = about.get("decisions") or []
    options = ", ".join(f"{key}={_written(value)}" for key, value in asdict(game.options).items())
    networks = len(found.networks)
    shape = f"hidden layers {list(found.settings.network.hidden)}"
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


def limits(found: Champion, game: Game) -> Iterator[str]:
    """What it cannot do, as a list."""
    unseen = [name for name in game.additions if not getattr(game.options, name)]
    but = f", but for {' and '.join(unseen)}=true, where it does not see what is added" if unseen else ""
    yield f"* It knows the options above alone; a table with others refuses it{but}."
    yield "* It chooses by values that a network has learned, without looking ahead."
    if len(found.networks) > 1:
        yield "* Who knows that several networks take turns, game by game, may learn in a game which one plays."
    if found.about.get("limits"):
        yield f"* {literal(one_line(found.about['limits']))}"


def _written(value: object) -> str:
    return "null" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
