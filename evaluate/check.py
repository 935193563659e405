"""`busso check ./war.py`: check that a game in a file meets the contract of games.

Each check plays random games and names the function that is wrong. Hidden information is checked only if the file
defines `reshuffle_hidden(states, seat, random)`, which redistributes in place what the seat cannot see. Exit code: 0 if
every check passes, 1 if one fails, 2 if the file has no game.

example:
  busso check ./war.py
"""

import sys
from collections.abc import Callable, Sequence
from functools import partial

from busso.base.own_files import OwnCodeError, own_code
from busso.cards import packages
from busso.command.main import command, parser_of
from busso.command.settings.untrusted import trust_game

HIDDEN = "reshuffle_hidden"
MOVES = 4_000  # with checked indices


def _failure_of(check: Callable[[], None]) -> str:
    """Return the fault that a check finds, in one line; empty if there is none."""
    try:
        with own_code():
            check()
    except OwnCodeError as error:
        cause = error.__cause__
        return str(cause) if isinstance(cause, AssertionError) else str(error)
    return ""


@command
def main(arguments: Sequence[str]) -> int:
    """Check the game in the file named on the command line and return the exit code."""
    parser = parser_of("check", "Check a game in a file.", "./war.py")
    parser.add_argument("file", metavar="FILE", help="a Python file that defines a game, or a folder with __init__.py")
    typed = parser.parse_args(arguments).file.removeprefix("game=")  # as other commands name it
    if not typed.endswith(".py") and "/" not in typed:
        parser.error(f"expected a file, ./NAME.py, not {typed!r}")
    print(f"compiling {typed} ...", file=sys.stderr, flush=True)
    return _report(trust_game(typed))


def _report(name: str) -> int:
    # Deferred: these import Numba, and --help must be fast.
    from busso.cards.conformance import CHECKS, Case, hidden_cards_do_not_matter, returns_are_conserved
    from busso.cards.game import load_game
    from busso.cards.own.trial import GameTrial

    game, file = load_game(name), packages.game_file(name)
    hidden = getattr(file.module, HIDDEN, None) if file is not None else None
    case = Case(game, hidden or (lambda states, seat, random: None))
    failed = False
    for check in CHECKS:
        if check is hidden_cards_do_not_matter and hidden is None:
            found = f"not checked; write {HIDDEN}(states, seat, random)"
        else:
            found = _failure_of(partial(check, case))
            failed |= bool(found)
        if check is returns_are_conserved and game.total is None and not found:
            found = "checked for teams only; pass game(..., total=) if results add up to one"
        _say(check.__name__.replace("_", " "), found)
    if file is not None:
        found = _failure_of(lambda: GameTrial(game, file).check_moves(MOVES))
        _say("indices and blocks fit", found)
        failed |= bool(found)
    return int(failed)


def _say(check: str, found: str) -> None:
    print(f"{check:<28}{found or 'ok'}", flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
