"""A tournament from its settings to its tables: who plays, until every pair has been played enough."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing
from dataclasses import asdict, replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

from cards.game import Game
from command import __version__
from command.terminal.console import plain_console, result_console
from command.terminal.progress import Progress
from evaluate.tournament import report
from evaluate.tournament.batches import Played, Worker
from evaluate.tournament.executors import Alone, Executor, Growing, OnRay, Processes, lost
from evaluate.tournament.journal import Journal, about_of
from evaluate.tournament.report import Pairing
from evaluate.tournament.schedule import Plan, Schedule
from evaluate.tournament.settings import AUTO, RAY, Pair, TournamentSettings, pairs_of
from train.dqn.players.named import file_of, fingerprint
from train.run.device import choose_device
from train.run.metrics import resources


def run(settings: TournamentSettings) -> list[Pairing]:
    """Play what is not yet in the folder, write it there as it comes, and print the tables."""
    worker = Worker(settings)
    game = worker.game
    pairs = pairs_of(settings, game)
    for player in settings.players:
        worker.load(player)  # what cannot play is said at once
    now = datetime.now().strftime("%Y%m%d-%H%M%S")
    folder = Path(settings.folder) if settings.folder else Path("tournaments") / game.name / now
    if settings.batch_deals is None:  # a search player that joins others does not change how many they played at a time
        settings = replace(settings, batch_deals=about_of(folder).get("batch_deals"))
    schedule = play_pairs(settings, worker, pairs, folder, partial(_write, folder, settings, game))
    results = _write(folder, settings, game, schedule)
    screen = result_console()
    for table in report.tables(results):
        screen.print(table)
    _say(f"written to {folder}")
    return results.pairings


def play_pairs(
    settings: TournamentSettings,
    worker: Worker,
    pairs: Sequence[Pair],
    folder: Path,
    settled: Callable[[Schedule], object] = lambda _: None,
) -> Schedule:
    """Play what is not yet in the folder, and keep it there as it comes; `settled` is called after each pair."""
    plan = Plan(settings.most_deals, settings.batch_for(worker.game), settings.half_width, settings.records)
    schedule = Schedule(pairs, plan)
    decides = about(settings, worker.game)
    journal = Journal(folder, decides)
    try:
        for played in journal.played:
            if schedule.known(played.batch):
                schedule.add(played)
        with closing(executor_for(settings, worker, decides["players"], schedule, folder)) as executor:
            play(schedule, executor, journal, partial(settled, schedule))
    except KeyboardInterrupt:
        _say(f"stopped: the same command with folder={folder} resumes")
        raise
    finally:
        journal.close()
    return schedule


def _say(line: str) -> None:
    plain_console(stderr=True).print(line, highlight=False)


def about(settings: TournamentSettings, game: Game) -> dict[str, Any]:
    """The settings that decide the results, as `Journal` keeps them, but for the number of deals."""
    players = {player: fingerprint(game, player) for player in settings.players}
    return {
        "busso": __version__,
        "game": {"name": game.name, **asdict(game.options)},
        "match": settings.match,
        "seating": settings.seating,
        "seed": settings.seed,
        "batch_deals": settings.batch_for(game),
        "device": choose_device(settings.device).type if any(players.values()) else "cpu",
        "players": players,
    }


def executor_for(
    settings: TournamentSettings, worker: Worker, files: Mapping[str, str], schedule: Schedule, folder: Path
) -> Executor:
    """The executor that `processes` asks for; it does not change the results."""
    cpus = max(1, resources.cpus() // settings.threads)
    if settings.processes == RAY:
        return OnRay(settings, files, folder)
    if settings.processes != AUTO:
        count = int(settings.processes)
        return Alone(worker) if count == 1 else Processes(settings, files, count)
    of_files = any(file_of(worker.game, player) for player in settings.players)
    on_gpu = of_files and choose_device(settings.device).type == "cuda"
    if cpus == 1 or on_gpu:  # one process fills a GPU as well as several, each of which takes memory there
        return Alone(worker)
    return Growing(worker, partial(Processes, settings, files, cpus), schedule.seconds_left)


def play(schedule: Schedule, executor: Executor, journal: Journal, settled: Callable[[], object]) -> None:
    """Play until every pair has been played enough; `settled` is called after each.

    Raises what a player raises, and ProcessLostError.
    """
    playing: set[Future[Played]] = set()
    with Progress("playing", schedule.total, "deals", schedule.deals) as progress:
        while not schedule.done:
            while len(playing) < executor.workers and (batch := schedule.next()) is not None:
                playing.add(executor.submit(batch))
            done, playing = wait(playing, return_when=FIRST_COMPLETED)
            for played in _results(done):
                journal.add(played)
                if schedule.add(played):
                    settled()
            pairs = f"of which {schedule.settled} of {len(schedule.states)} pairs are done"
            note = f"({pairs})" if len(schedule.states) > 1 else ""
            progress.update(schedule.deals, note, schedule.total)


def _results(done: Iterable[Future[Played]]) -> Iterator[Played]:
    try:
        for future in done:
            yield future.result()
    except BrokenProcessPool as error:
        raise lost(error) from None


def _write(folder: Path, settings: TournamentSettings, game: Game, schedule: Schedule) -> report.Results:
    results = report.results_of(game, settings, list(schedule.states.values()))
    report.write(folder, results)
    if settings.records:
        report.write_records(folder, list(schedule.states.values()))
    return results
