"""`busso tournament players=[...] deals=4096 seed=7`: play every pair of players on the same duplicate deals.

With `match=21` the players play Tressette matches to that score, and matches are counted. With
`seating=one_against_many` each player in turn plays one seat against the other in all other seats: two rows per pair.

example:
  busso tournament 'players=[champion,greedy,random]' deals=1024 seed=7
"""

import sys

from busso.command.app import settings_command
from busso.evaluate.tournament.settings import TournamentSettings


@settings_command(TournamentSettings, "tournament")
def main(settings: TournamentSettings) -> None:
    """Run the command."""
    from busso.evaluate.tournament.run import run  # deferred: imports Numba, and --help must be fast

    run(settings)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
