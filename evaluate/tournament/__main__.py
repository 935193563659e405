"""`python -m evaluate.tournament players=[...] deals=4096 seed=7`: every pair of players on duplicate deals.

With `match=21` the hands of Tressette are played on until a team has so many points, and it is matches that count. With
`seating=one_against_many` each player also sits alone among seats that are all the other's, so that a pair is
played, and has a row, both ways round.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Sequence

from command.settings.line import run_command, settings_of
from evaluate.tournament.settings import TournamentSettings

EXAMPLE = "python -m evaluate.tournament 'players=[champion,greedy,random]' deals=1024 seed=7"


def main(arguments: Sequence[str]) -> int:
    """Run the command line; returns the exit code."""
    logging.basicConfig(format="%(levelname)s: %(message)s")
    return run_command(_main, arguments)


def _main(arguments: Sequence[str]) -> int:
    settings = settings_of(TournamentSettings, "tournament", arguments, EXAMPLE)
    if settings is None:
        return 0
    from evaluate.tournament.run import run  # with Numba, for which --help and --cfg do not wait

    run(settings)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
