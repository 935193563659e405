"""`busso regret players=[PLAYER,...] base=champion`: what single decisions gain over a base player's.

Positions come from self-play of `base`: in each game one decision with a choice is drawn uniformly. Each legal action
is played there on the true deal, and `base` plays on in all seats. Each player chooses its own action. Its gain is the
result of that action minus the result of the base's own action. A result is own minus the other side's, or games won.

This is the gain of deviating once and playing as `base` afterwards. The deal is one exact sample of what the seat
cannot know, given what it has seen, so the mean over positions is unbiased. It is not the gain of always playing so:
the player never meets positions of its own, and its later decisions are those of `base`.

Players see the position only. Players that draw something at the beginning of a game draw it again, such as a mixture
of networks. The folder keeps all results: another player costs its own decisions only, and a stopped command resumes.

example:
  busso regret 'players=[search:champion,monte_carlo,greedy]' base=champion positions=2000
"""

from __future__ import annotations

import sys

from busso.command.app import settings_command
from busso.evaluate.regret.settings import RegretSettings


@settings_command(RegretSettings, "regret")
def main(settings: RegretSettings) -> None:
    """Run the command."""
    from busso.evaluate.regret.run import run  # with Numba, for which --help does not wait

    run(settings)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
