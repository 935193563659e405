"""`python -m evaluate.regret players=[PLAYER,...] base=champion`: what single decisions gain over those of a base.

Positions are of the self-play of `base`: in each game one decision with a choice is drawn, each as likely. Each legal
action is played there on the true deal, and `base` plays on in all seats. A player is asked for its own action. Its
gain is the result of that action less the result of the base's own action: own less the other side's, and games won.

So this is the gain of deviating once and playing as `base` afterwards. The deal is one exact sample of what the seat
cannot know, given what it has seen, so the mean over positions is unbiased. It is not the gain of playing so always:
the player is never in positions of its own, and its later decisions are those of `base`.

Players are asked about the position alone. What they draw at the beginning of a game they draw anew, and so does a base
that is a mixture of networks when it plays on. What was played is kept in the folder: a further player costs its own
decisions alone, and a stopped command resumes.
"""

from __future__ import annotations

import sys

from command.main import settings_command
from evaluate.regret.settings import RegretSettings

EXAMPLE = "python -m evaluate.regret 'players=[search(champion),monte_carlo,greedy]' base=champion positions=2000"


@settings_command(RegretSettings, "regret", EXAMPLE)
def main(settings: RegretSettings) -> None:
    """Run the command."""
    from evaluate.regret.run import run  # with Numba, for which --help and --cfg do not wait

    run(settings)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
