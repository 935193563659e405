"""`busso tournament players=[...] deals=4096 seed=7`: every pair of players, on the same duplicate deals.

With `match=21` the players play matches of Tressette to that score, and matches are counted. With
`seating=one_against_many` each player also sits alone among seats of the other player, so a pair has two rows.

example:
  busso tournament 'players=[champion,greedy,random]' deals=1024 seed=7
"""

from __future__ import annotations

import sys

from busso.command.app import settings_command
from busso.evaluate.tournament.settings import TournamentSettings


@settings_command(TournamentSettings, "tournament")
def main(settings: TournamentSettings) -> None:
    """Run the command."""
    from busso.evaluate.tournament.run import run  # with Numba, for which --help does not wait

    run(settings)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
