"""`busso review FILE`: grade every decision of recorded games: best, fine, mistake or blunder.

The review shows the better action and its value, given what the seat could know, as text or one page of HTML. Records
that cannot be played are reported and skipped. Exit code: 0 if every record was graded, 1 if one was skipped, 2 if
there was nothing to grade or no player that can grade, 130 after Ctrl-C, which keeps the grades so far.

example:
  busso review games.jsonl format=html to=review.html
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from busso.base.files import write_atomic
from busso.command.app import settings_command
from busso.command.console import Progress
from busso.command.settings.checks import SettingsError
from busso.command.settings.quoting import in_quotes
from busso.evaluate.review.settings import HTML, ReviewSettings
from busso.train.run.device import choose_device

if TYPE_CHECKING:
    from busso.evaluate.recorded import InvalidRecord, RecordedHand
    from busso.evaluate.review.grader import Decision, Grader, Reviewed

_MOST_ERRORS = 10  # printed one by one; the review lists all


def _with_file(arguments: Sequence[str]) -> list[str]:
    """Return the arguments with `games.jsonl` as `file=games.jsonl`."""
    files = [each for each in arguments if "=" not in each or Path(each).is_file()]
    return [f"file={in_quotes(each)}" if each in files else each for each in arguments]


@settings_command(ReviewSettings, "review", given=_with_file)
def main(settings: ReviewSettings) -> int:
    """Grade the records, write the review, and return the exit code."""
    import torch  # deferred: --help must be fast

    from busso.evaluate.recorded import InvalidRecord

    torch.set_num_threads(1)  # the batches are too small for more threads
    _check_target(settings)
    there = _read(settings)
    graders = _graders(settings, there)  # fails before any grading starts
    reviewed: list[Reviewed] = []
    stopped = False
    try:
        _review(settings, there, graders, reviewed)
    except KeyboardInterrupt:
        stopped = True
    _write(settings, reviewed)
    damaged = [each for each in reviewed if isinstance(each, InvalidRecord)]
    for each in damaged[:_MOST_ERRORS]:
        print(f"error: {settings.file}, line {each.line}, skipped: {each.error}", file=sys.stderr)
    if len(damaged) > _MOST_ERRORS:
        print(f"error: {settings.file}: {len(damaged) - _MOST_ERRORS} more are skipped", file=sys.stderr)
    if stopped:
        print(f"stopped: {len(reviewed)} of {len(there)} hands graded; hands=N grades the first N", file=sys.stderr)
        return 130
    return int(bool(damaged))


def _check_target(settings: ReviewSettings) -> None:
    """Raise SettingsError for an unusable target before grading, which is slow, starts."""
    target = settings.target
    if target is None:
        return
    if target.is_dir() or not target.parent.is_dir():
        why = "is a folder" if target.is_dir() else f"lies in {target.parent}, which is no folder"
        raise SettingsError("to", f"{target} {why}", "name a file, as in to=review.html")
    if target.exists() and Path(settings.file).exists() and target.samefile(settings.file):
        raise SettingsError("to", f"{target} is the file of records itself", "name another, as in to=review.html")


def _read(settings: ReviewSettings) -> list[RecordedHand | InvalidRecord]:
    from busso.evaluate.recorded import RecordedHand, recorded_hands

    found: list[RecordedHand | InvalidRecord] = []
    hands = 0
    for each in recorded_hands(Path(settings.file)):
        if isinstance(each, RecordedHand):
            hands += 1
            if settings.hands is not None and hands > settings.hands:
                break
        found.append(each)
    most = max((_occupied(each) for each in found if isinstance(each, RecordedHand)), default=0)
    if most and settings.seats and min(settings.seats) >= most:
        raise SettingsError(
            "seats", f"no player sat in {settings.seats}", f"seats are 0 to {most - 1} in {settings.file}"
        )
    if not found:
        raise SettingsError("file", f"{settings.file} contains no records", "busso tournament records=10 writes some")
    return found


def _graders(settings: ReviewSettings, there: Sequence[RecordedHand | InvalidRecord]) -> dict[str, Grader]:
    from busso.evaluate.recorded import RecordedHand
    from busso.evaluate.review.grader import grader_of

    device = choose_device(settings.device)
    found: dict[str, Grader] = {}
    for each in there:
        if isinstance(each, RecordedHand):
            key = _key(each)
            found[key] = found.get(key) or grader_of(each.hand.game, settings.by, device, settings.grades)
    return found


def _key(recorded: RecordedHand) -> str:
    game = recorded.hand.game
    return f"{game.name} {game.options!r}"


def _occupied(recorded: RecordedHand) -> int:
    return int(recorded.hand.game.occupied(recorded.hand.start).sum())


def _review(
    settings: ReviewSettings,
    there: Sequence[RecordedHand | InvalidRecord],
    graders: dict[str, Grader],
    reviewed: list[Reviewed],
) -> None:
    """Grade hand by hand into `reviewed`, so that an interrupt leaves only whole hands."""
    from busso.evaluate.recorded import InvalidRecord, RecordedHand
    from busso.evaluate.review.grader import ReviewedHand, decided

    moves = sum(len(each.hand.moves) for each in there if isinstance(each, RecordedHand))
    with Progress("grading", moves, "moves") as progress:
        for each in there:
            if isinstance(each, InvalidRecord):
                reviewed.append(each)
                continue
            decisions: list[Decision] = []
            seats = [seat for seat in range(_occupied(each)) if settings.seats is None or seat in settings.seats]
            for number, move in enumerate(each.hand.moves):
                if move.seat in seats:
                    decision = decided(each, graders[_key(each)], number)
                    decisions += [] if decision is None else [decision]
                progress.advance()
            reviewed.append(ReviewedHand(each, graders[_key(each)], decisions, tuple(seats)))


def _write(settings: ReviewSettings, reviewed: Sequence[Reviewed]) -> None:
    from busso.evaluate.review.grader import tallies
    from busso.evaluate.review.text import text

    summary = tallies(reviewed)
    if settings.format == HTML:
        from busso.evaluate.review.page import page

        found = page(reviewed, summary, settings.show, f"Review of {Path(settings.file).name}")
    else:
        found = "\n".join(text(reviewed, summary, settings.show)) + "\n"
    if settings.target is None:
        print(found, end="")
        return
    target = settings.target.resolve()  # a symbolic link is kept and its target replaced
    if target.exists() and not target.is_file():  # /dev/stdout, a pipe
        target.write_text(found, encoding="utf-8")
    else:
        write_atomic(target, found)
    print(f"written to {settings.target}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
