"""Report on a run, from the data in its folder and games that its agent plays for the report."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from busso.cards.base.errors import UserError
from busso.cards.presentation import own_module, presentation_of
from busso.evaluate.markdown import code
from busso.evaluate.report import games
from busso.evaluate.report.content import Report, Section, Text
from busso.evaluate.report.sections import calibration, choices, exact
from busso.evaluate.report.sections.observing import ObservedGames, load_agent, watch_games
from busso.evaluate.report.sections.training import (
    curves_section,
    facts,
    origin_section,
    results_section,
    settings_section,
    throughput_section,
)
from busso.train.dqn.network.own_network import NETWORK
from busso.train.run.read import Run

Say = Callable[[str], None]


@dataclass(frozen=True)
class ReportOptions:
    """Extent of a report: games to play, final tricks to solve, and whether to measure the stages of training."""

    games: int
    tricks: int
    seed: int
    measure: bool


def report_of(run: Run, seeds: Sequence[Run], wanted: ReportOptions, say: Say) -> Report:
    """Return the report on a run and on `seeds`, its repetitions with other seeds; `say` receives progress messages."""
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
        text += " with " + ", ".join(code(other.name) for other in seeds) + ", which differ from it in the seed only"
    return text + "."


def _playing(run: Run, wanted: ReportOptions, say: Say) -> list[Section]:
    """Return the sections that need the trained agent, or a note if it cannot be loaded."""
    try:
        if run.settings.load_game().model is not None:
            say("solving the game")
            found = [exact.section(run)]
        else:
            found = []
        if getattr(run.settings, "policy", None) is not None:
            return found  # values of a given policy do not choose actions
        agent = load_agent(run)
    except UserError as error:
        if error.key == NETWORK:  # the user's network file exists but must be named on the command line
            raise
        return [Section("How it plays", [Text(f"No games were played: {code(error)}.")])]
    say(f"playing {wanted.games:,} games")
    return [*found, *_sections(watch_games(agent, wanted.games, wanted.seed), wanted, say)]


def _sections(watched: ObservedGames, wanted: ReportOptions, say: Say) -> list[Section]:
    game = watched.agent.game
    own = own_module(games.__name__, game.name)
    unit, scale = presentation_of(game).units(game).get(watched.agent.reward, ("reward", 1.0))
    blocks = choices.by_action(watched) if own is None else own.blocks(watched)
    who = f"against `{watched.agent.opponent_name}`" if watched.agent.opponent else "against itself"
    count = f"{watched.games:,} games {who}" if game.seats > 1 else f"{watched.games:,} games"
    lead = Text(f"Of {watched.action.size:,} decisions in {count}, {(watched.choices > 1).mean():.0%} had a choice.")
    found: list[Section | None] = [
        Section("How it plays", [lead, *blocks]),
        calibration.section(watched, unit, scale),
    ]
    if own is not None:
        say(f"solving the last {wanted.tricks} tricks")
        found += own.sections(watched, wanted.tricks, wanted.seed)
    return [section for section in found if section is not None]
