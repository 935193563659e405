"""Run of a tournament, from settings to tables."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing
from dataclasses import asdict, replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

from busso.base import system
from busso.base.files import create_unused
from busso.cards.game import Game
from busso.command.console import Progress, as_json, plain_console, result_console
from busso.command.settings.game import load_configured_game
from busso.evaluate.tournament import report
from busso.evaluate.tournament.batches import Executor, Played, TournamentWorker, lost
from busso.evaluate.tournament.journal import CODE, FORMAT, PLAYERS, Journal, about_of, not_writable
from busso.evaluate.tournament.report import Pairing
from busso.evaluate.tournament.schedule import Plan, Schedule
from busso.evaluate.tournament.settings import AUTO, Pair, TournamentSettings, check_game, pairs_of
from busso.train.players.resolve import resolve_all
from busso.version import __version__


def run(settings: TournamentSettings) -> list[Pairing]:
    """Play the batches that are not in the folder yet, write results as they come, and print the tables."""
    game = load_configured_game(settings.game)
    check_game(settings, game)
    players = resolve_all(game, settings.players)
    if settings.folder and settings.batch_deals is None:  # it keeps its batch size, even if a search player joins
        settings = replace(settings, batch_deals=about_of(Path(settings.folder)).get("batch_deals"))
    worker = TournamentWorker(settings, players, game)
    for player in players:
        worker.load(player)  # fail early
    folder = Path(settings.folder) if settings.folder else _new_folder(game)
    schedule = play_pairs(worker, pairs_of(settings, players), folder, partial(_write, folder, settings, game))
    results = _write(folder, settings, game, schedule)
    if not as_json((folder / "results.json").read_text()):
        report.show(results, result_console())
    from busso.evaluate.tournament import page  # deferred: imports Matplotlib

    page.write(folder, results)
    _say(f"written to {folder}: report.html and tables")
    return results.pairings


def _new_folder(game: Game) -> Path:
    """Create the default folder, unique even if the tasks of a job array start in the same second."""
    path = Path("tournaments") / game.name / datetime.now().strftime("%Y%m%d-%H%M%S")
    try:
        return create_unused(path, Path.mkdir)
    except OSError as error:
        raise not_writable(path, error) from None


def play_pairs(
    worker: TournamentWorker,
    pairs: Sequence[Pair],
    folder: Path,
    settled: Callable[[Schedule], object] = lambda _: None,
) -> Schedule:
    """Play the batches that are not in the folder yet and write them there; `settled` is called after each pair."""
    settings = worker.settings
    plan = Plan(settings.most_deals, settings.batch_for(worker.players.values()), settings.half_width, settings.records)
    schedule = Schedule(pairs, plan)
    journal = Journal(folder, about(worker))
    try:
        for played in journal.played:
            if schedule.known(played.batch):
                schedule.add(played)
        with closing(executor_for(worker, schedule)) as executor:
            play(schedule, executor, journal, partial(settled, schedule))
    except KeyboardInterrupt:
        _say(f"stopped: the same command with folder={folder} resumes")
        raise
    finally:
        journal.close()
    return schedule


def _say(line: str) -> None:
    plain_console(stderr=True).print(line, highlight=False)


def about(worker: TournamentWorker) -> dict[str, Any]:
    """Return what decides the results, as kept by `Journal`, without the number of deals."""
    settings, game, players = worker.settings, worker.game, worker.players
    return {
        "busso": __version__,
        "game": {"name": game.name, **asdict(game.options)},
        "match": settings.match,
        "seating": settings.seating,
        "seed": settings.seed,
        "batch_deals": settings.batch_for(players.values()),
        "device": worker.device.type if worker.of_networks else "cpu",
        PLAYERS: {name: player.sha256 for name, player in players.items()},
        CODE: worker.code,
        FORMAT: worker.number_format,
    }


def executor_for(worker: TournamentWorker, schedule: Schedule) -> Executor:
    """Return the executor for the setting `processes`, which does not affect the results."""
    settings = worker.settings
    if settings.processes != AUTO:
        return Executor(worker, int(settings.processes))
    on_gpu = worker.of_networks and worker.device.type == "cuda"
    # One process can saturate a GPU, and each more takes GPU memory.
    return Executor(worker, 1 if on_gpu else system.cpus() // settings.threads, schedule.seconds_left)


def play(schedule: Schedule, executor: Executor, journal: Journal, settled: Callable[[], object]) -> None:
    """Play until every pair is settled; `settled` is called after each. Raises ProcessLostError and players' errors."""
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
            pairs = f"{schedule.settled} of {len(schedule.states)} pairs done"
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
