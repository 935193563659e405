"""A player of Tressette in a program of its own, without busso; docs/howto/tournaments.md has the form of the lines.

`busso tournament 'players=[process:python examples/process_player.py,random]' deals=64`
"""

import json
import sys

STRENGTH = "4567FCRA23"  # of the ranks, low to high
THIRDS = {"A": 3, "F": 1, "C": 1, "R": 1, "2": 1, "3": 1}  # of a point


def choose(names, table):
    """Lead the strongest card; take the trick when last, if possible; else play the card with the fewest points."""
    if not table:  # this seat leads
        return max(names, key=lambda card: STRENGTH.index(card[0]))
    suit, highest = table[0][1][1], max(STRENGTH.index(card[0]) for _, card in table if card[1] == table[0][1][1])
    winning = [card for card in names if card[1] == suit and STRENGTH.index(card[0]) > highest]
    if winning and len(table) == 3:
        return max(winning, key=lambda card: THIRDS.get(card[0], 0))
    return min(names, key=lambda card: (THIRDS.get(card[0], 0), STRENGTH.index(card[0])))


for text in sys.stdin:
    line = json.loads(text)
    if line["type"] == "hello":
        print(json.dumps({"protocol": 1}), flush=True)
    elif line["type"] == "decision":
        card = choose(line["names"], line["known"]["table"])
        print(json.dumps({"id": line["id"], "action": line["legal"][line["names"].index(card)]}), flush=True)
