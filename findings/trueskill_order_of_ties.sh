#!/usr/bin/env bash
# trueskill 0.4.5: players who tie get different ratings, by the order in which they are listed.
#
# Eight new players, of whom one wins and seven lose alike: ranks=[0, 1, 1, 1, 1, 1, 1, 1], draw_probability=0.5.
#
#   winner 32.081, losers as listed: 23.317 23.656 23.915 24.106 24.239 24.323 24.363
#   after 2,000 such games, won in turn: seats 1 to 8 have 22.36 23.20 23.95 24.60 25.12 25.52 25.78 25.93
#
# A good guess is that equal players with equal results keep equal ratings, whatever the order of the list. But the
# factor graph is a chain: sorted by rank, each team is compared with the next one only, and ties stay in the order of
# the list. The loser listed first is the one who lost against the winner; the others tied with somebody who lost. The
# error is systematic, is as large after 200 games as after 2,000, and grows with draw_probability (0.04 among the
# losers of one game by the default of 0.1). The documentation offers `ranks` for ties without mentioning it.
# openskill 6.2.0 gives all losers the same rating.
# Whoever rates games of one winner and several losers from a fixed list of seats meets it: the last seat looks
# stronger than the first. List tied players in random order.
#
# Run it with Python 3.11 or newer and access to PyPI. It ends with 1 if the results differ from these.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check trueskill==0.4.5 openskill==6.2.0
"$folder/venv/bin/python" -W ignore - <<'PYTHON'
import trueskill
from openskill.models import PlackettLuce

ranks = [0] + [1] * 7
rate = trueskill.TrueSkill(draw_probability=0.5).rate
listed = [round(each.mu, 3) for (each,) in rate([(trueskill.Rating(),)] * 8, ranks=ranks)]
model = PlackettLuce()
others = [round(each.mu, 3) for (each,) in model.rate([[model.rating()] for _ in range(8)], ranks=ranks)]
players = [trueskill.Rating()] * 8
for game in range(2000):
    results = [int(seat != game % 8) for seat in range(8)]
    players = [each for (each,) in rate([(each,) for each in players], ranks=results)]
lasting = [round(each.mu, 2) for each in players]
print("trueskill", *listed, "openskill", *others, "after 2,000 games", *lasting)
expected = [32.081, 23.317, 23.656, 23.915, 24.106, 24.239, 24.323, 24.363]
raise SystemExit(listed != expected or len(set(others)) != 2 or lasting[-1] <= lasting[0])
PYTHON
