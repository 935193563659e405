"""The report of a run: what its folder says, and what its agent does in games that are played for it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass

from cards.game import Game
from command.errors import UserError
from evaluate.markdown import code
from evaluate.report.content import Report, Section, Text
from evaluate.report.sections import calibration, choices, endgame, exact, played, tressette_play
from evaluate.report.sections.observing import Watched, load_agent, watch_games
from evaluate.report.sections.solver import Solver
from evaluate.report.sections.training import (
    curves_section,
    facts,
    origin_section,
    results_section,
    settings_section,
    throughput_section,
)
from train.run.read import Run
from tressette.rules import POINTS

Say = Callable[[str], None]


@dataclass(frozen=True)
class Wanted:
    """How much is played and solved for a report, and whether stages are measured."""

    games: int
    tricks: int
    seed: int
    measure: bool


def report_of(run: Run, seeds: Sequence[Run], wanted: Wanted, say: Say) -> Report:
    """All that is known of a run, and of `seeds`, which differ in their seed alone; `say` hears what is being done."""
    runs = [run, *seeds]
    say("reading the curves")
    about: list[Section | None] = [results_section(runs), curves_section(runs)]
    playing = list(_playing(run, wanted, say))
    if wanted.measure:
        say("measuring what limits it")
    last = [settings_section(run), throughput_section(run, wanted.measure), origin_section(run)]
    sections = [section for section in (*about, *playing, *last) if section is not None]
    return Report(f"{run.settings.game_name}: {run.name}", _lead(run, seeds), facts(run, len(runs)), sections)


def _lead(run: Run, seeds: Sequence[Run]) -> str:
    text = f"The run in {code(run.folder)}"
    if seeds:
        text += " with " + ", ".join(code(other.name) for other in seeds) + ", which differ from it in the seed alone"
    return text + "."


def _playing(run: Run, wanted: Wanted, say: Say) -> list[Section]:
    """What needs the agent itself; a line instead for a run that has none yet."""
    try:
        if run.settings.load_game().model is not None:
            say("solving the game")
            found = [exact.section(run)]
        else:
            found = []
        if getattr(run.settings, "policy", None) is not None:
            return found  # of tables that only say what a policy is worth, nobody plays
        agent = load_agent(run)
    except UserError as error:
        return [Section("How it plays", [Text(f"No games were played: {code(error)}.")])]
    with Solver() if agent.game.name == "tressette" else nullcontext() as solver:
        say(f"playing {wanted.games:,} games")
        watched = watch_games(agent, wanted.games, wanted.seed)
        return [*found, *_sections(watched, wanted, solver, say)]


def _sections(watched: Watched, wanted: Wanted, solver: Solver | None, say: Say) -> list[Section]:
    game = watched.agent.game
    unit, scale = unit_of(game, watched.agent.reward)
    blocks = tressette_play.blocks(watched) if game.name == "tressette" else choices.by_action(watched)
    who = f"against `{watched.agent.opponent_name}`" if watched.agent.opponent else "against itself"
    games = f"{watched.games:,} games {who}" if game.seats > 1 else f"{watched.games:,} games"
    lead = Text(f"Of {watched.action.size:,} decisions in {games}, {(watched.choices > 1).mean():.0%} had a choice.")
    found: list[Section | None] = [
        Section("How it plays", [lead, *blocks]),
        calibration.section(watched, unit, scale),
    ]
    if solver is not None:
        say(f"solving the last {wanted.tricks} tricks")
        found.append(endgame.section(watched, wanted.tricks, wanted.seed, solver))
    found.append(played.section(watched, unit, scale, solver))
    return [section for section in found if section is not None]


def unit_of(game: Game, reward: str) -> tuple[str, float]:
    """In what a value is told, and how many of it one of the reward is: 11 points of difference in Tressette."""
    if game.name == "tressette":
        return {"points": ("points of difference", float(POINTS)), "win": ("wins less losses", 1.0)}.get(
            reward, ("reward", 1.0)
        )
    if game.name == "spike":
        credits = float(game.blank["start_credits"])
        return {"stack": ("credits", credits), "credits": ("credits", 1.0)}.get(reward, ("reward", 1.0))
    return "reward", 1.0
