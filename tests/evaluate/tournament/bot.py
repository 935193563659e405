"""`python bot.py MODE [MARKER]`: programs that play over the line protocol, well or badly, without importing busso.

A faulty mode shows its fault once, while the file MARKER is missing, or always without MARKER.
"""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

DECK = [rank + suit for suit in "DCSB" for rank in "4567FCRA23"]
THIRDS = {"A": 3, "F": 1, "C": 1, "R": 1, "2": 1, "3": 1}


def strength(card):
    return "4567FCRA23".index(card[0])


def beaten(card, rivals):
    return any(other[1] == card[1] and strength(other) > strength(card) for other in rivals)


def weakest(cards, sign=1):
    return min(cards, key=lambda card: (sign * THIRDS.get(card[0], 0), strength(card), DECK.index(card)))


def greedy(line):
    """Choose as `busso.tressette.players.greedy`, from the fields of the line."""
    seat, known, names = line["seat"], line["known"], line["names"]
    rivals = set(DECK) - set(known["hand"]) - {card for _, card in known["played"]}
    if not known["table"]:
        if masters := [card for card in names if not beaten(card, rivals)]:
            return weakest(masters, -1)
        suits = [[card for card in names if card[1] == suit] for suit in "DCSB"]
        suits = [cards for cards in suits if any(strength(card) < 4 for card in cards)]
        return min(max(suits, key=len), key=strength) if suits else weakest(names)
    suit, moved = known["table"][0][1][1], {other for other, _ in known["table"]}
    if not any(
        other not in moved and [other, suit] not in known["voids"] for other in ((seat + 1) % 4, (seat + 3) % 4)
    ):
        rivals = set()
    winner, best = max((each for each in known["table"] if each[1][1] == suit), key=lambda each: strength(each[1]))
    if winner == (seat + 2) % 4 and not beaten(best, rivals):
        return weakest(names, -1)
    certain = [card for card in names if beaten(best, [card]) and not beaten(card, rivals)]
    return min(certain, key=strength) if certain else weakest(names)


def say(**answer):
    os.write(1, json.dumps(answer).encode() + b"\n")


def misbehave(mode, line):
    sys.stderr.write(f"I am {mode}\n")
    sys.stderr.flush()
    if mode == "dead":
        sys.exit(3)
    if mode == "silent":
        time.sleep(1000)
    if mode == "illegal":
        say(id=line["id"], action=next(a for a in range(99) if a not in line["legal"]))
    if mode == "garbage":
        os.write(1, b"I play the ace!\n")
    if mode == "stranger":
        say(id=line["id"] + 1000, action=line["legal"][0])
    if mode == "endless":
        while True:
            os.write(1, b"x" * 65536)


def lines():
    """Return the available lines, the latest first."""
    rest = b""
    while read := os.read(0, 1 << 22):
        *whole, rest = (rest + read).split(b"\n")
        yield from map(json.loads, reversed(whole))


mode, marker = sys.argv[1], Path(sys.argv[2]) if len(sys.argv) > 2 else None
for line in lines():
    if line["type"] == "hello":
        say(protocol=1 if mode != "old" else 0)
        if mode == "parent":
            print(subprocess.Popen(["sleep", "1000"]).pid, os.getpid(), file=marker.open("w"))
    elif line["type"] == "decision":
        if mode == "greedy":
            say(id=line["id"], action=line["legal"][line["names"].index(greedy(line))])
            continue
        if mode not in ("good", "slow", "parent") and not (marker and marker.exists()):
            if marker:
                marker.touch()
            misbehave(mode, line)
            if mode == "illegal":
                continue
        if mode == "slow":
            time.sleep(0.05)
        say(id=line["id"], action=line["legal"][0])
