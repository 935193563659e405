"""How an agent plays Tressette: its cards by trick, the suits it leads, and the signals of its leads."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from busso.cards.matches.duplicate import estimate
from busso.evaluate.report.content import Block, Figure, TextTable
from busso.evaluate.report.drawing import COLOURS, Numbers, new_figure, style, to_svg
from busso.evaluate.report.sections.choices import stacked
from busso.evaluate.report.sections.observing import Watched
from busso.tressette.cards import ACE, CARDS, RANKS, SUITS, THREE, TWO
from busso.tressette.rules import BUSSO, SEATS, STRISCIO, TRICKS, VOLO

_KINDS = ("3", "2", "ace", "king, horse or jack", "4 to 7")
_SIGNALS = {BUSSO: "busso", STRISCIO: "striscio", VOLO: "volo"}


def hands_of(watched: Watched) -> NDArray[np.bool_]:
    """The cards of the seat that decides, `[decisions, cards]`."""
    masks = watched.states["hands"][np.arange(watched.seat.size), watched.seat]
    held: NDArray[np.bool_] = (masks[:, None] >> np.arange(CARDS, dtype=np.uint64)) & np.uint64(1) != 0
    return held


def leads_of(watched: Watched) -> NDArray[np.int64]:
    """The rows in which a trick is led."""
    return np.flatnonzero(watched.states["plays"] % SEATS == 0)


def blocks(watched: Watched) -> list[Block]:
    """All of it."""
    found: list[Block] = [_legal_by_trick(watched), _played_by_trick(watched), *_suit_lengths(watched)]
    if bool(watched.agent.game.blank["with_signals"]):
        found.append(_signals(watched))
    return found


def _legal_by_trick(watched: Watched) -> TextTable:
    trick = watched.states["plays"].astype(np.int64) // SEATS
    leads = watched.states["plays"] % SEATS == 0
    rows = []
    for number in range(TRICKS):
        here = trick == number
        followed = watched.choices[here & ~leads]
        highest = _is_highest(watched, np.flatnonzero(here & leads))
        rows.append(
            [
                str(number + 1),
                f"{watched.choices[here & leads].mean():.1f}" if (here & leads).any() else "",
                f"{followed.mean():.1f}" if followed.size else "",
                f"{(followed == 1).mean():.0%}" if followed.size else "",
                f"{highest.mean():.0%}" if highest.size else "",
            ]
        )
    columns = (
        "trick",
        "legal cards, leading",
        "following",
        "forced, following",
        "leads the highest card left of a suit",
    )
    return TextTable(columns, rows, "Means over the decisions of each trick.", left=())


def _is_highest(watched: Watched, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Whether no other seat holds a higher card of the suit that is led."""
    cards = watched.action[rows]
    others = np.bitwise_or.reduce(watched.states["hands"][rows], axis=1)
    others &= ~watched.states["hands"][rows, watched.seat[rows]]
    above = (others >> (cards.astype(np.uint64) + np.uint64(1))) & (
        (np.uint64(1) << (RANKS - 1 - cards % RANKS).astype(np.uint64)) - np.uint64(1)
    )
    none: NDArray[np.bool_] = above == 0
    return none


def kind_of(cards: NDArray[np.int64]) -> NDArray[np.int64]:
    """3, 2, ace, face card or a low one, as numbers of `_KINDS`."""
    strength = cards % RANKS
    return np.select([strength == THREE, strength == TWO, strength == ACE, strength >= 4], [0, 1, 2, 3], 4)


def _played_by_trick(watched: Watched) -> Figure:
    shares = np.zeros((2 * TRICKS, len(_KINDS)))
    plays = watched.states["plays"].astype(np.int64)
    row = 2 * (plays // SEATS) + (plays % SEATS != 0)
    np.add.at(shares, (row, kind_of(watched.action)), 1)
    shares /= np.maximum(shares.sum(axis=1, keepdims=True), 1)
    names = [f"trick {k + 1}" for k in range(TRICKS)]
    panels = {"led": (names, shares[0::2]), "followed with": (names, shares[1::2])}
    svg = stacked("cards-by-trick", panels, _KINDS)
    return Figure(
        "cards-by-trick", svg, "Kinds of cards led and followed with in each trick.", "Cards played, by trick."
    )


def suit_lengths(watched: Watched, rows: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """For leads: how many cards of each suit the hand holds, `[rows, suits]`, and how many of the one that it leads."""
    lengths = hands_of(watched)[rows].reshape(-1, SUITS, RANKS).sum(axis=2)
    return lengths, lengths[np.arange(rows.size), watched.action[rows] // RANKS]


def _suit_lengths(watched: Watched) -> list[Block]:
    """How often the suit that is led has each number of cards in the hand, beside a card drawn from the hand."""
    leads = leads_of(watched)
    plays = watched.states["plays"][leads]
    panels = (("first lead", leads[plays == 0]), ("all leads", leads))
    shares: dict[str, tuple[Numbers, Numbers]] = {}
    rows: list[list[str]] = []
    for name, these in panels:
        if not these.size:
            continue
        lengths, led = suit_lengths(watched, these)
        own = np.bincount(led, minlength=RANKS + 1) / led.size
        drawn = (
            np.bincount(lengths.ravel(), (lengths / lengths.sum(axis=1, keepdims=True)).ravel(), RANKS + 1) / led.size
        )
        shares[name] = (own, drawn)
        longest = lengths.max(axis=1)
        cards = kind_of(watched.action[these])
        expected = (np.where(lengths == longest[:, None], lengths, 0).sum(axis=1) / lengths.sum(axis=1)).mean()
        share = estimate((led == longest).astype(np.float64))
        rows.append(
            [
                name,
                f"{led.size:,}",
                f"{share.mean:.1%} ± {100 * share.half_width:.1f}",
                f"{expected:.1%}",
                *(f"{(cards == kind).mean():.0%}" for kind in range(len(_KINDS))),
            ]
        )
    columns = ("", "leads", "from a longest suit", "of a card at random", *_KINDS)
    if not shares:
        return []
    caption = "How many cards of the suit it leads are in its hand, against a card drawn from the hand."
    return [
        Figure("suit-lengths", _draw_lengths(shares), "Lengths of the suits that are led.", caption),
        TextTable(columns, rows, "Leads, and which cards they are."),
    ]


def _draw_lengths(shares: dict[str, tuple[Numbers, Numbers]]) -> str:
    with style():
        figure, axes = new_figure(2.6, 1, len(shares), sharey=True)
        for axis, (name, (own, drawn)) in zip(axes[0], shares.items(), strict=True):
            lengths = np.arange(1, RANKS + 1)
            axis.bar(lengths - 0.2, own[1:], 0.4, color=COLOURS[0], label="the agent")
            axis.bar(lengths + 0.2, drawn[1:], 0.4, color=COLOURS[4], label="a card at random")
            axis.set_xticks(lengths)
            axis.set_xlim(0.4, min(RANKS, np.flatnonzero(np.maximum(own, drawn) > 0.002).max()) + 0.6)
            axis.grid(visible=False, axis="x")
            axis.set_xlabel("cards of the suit in the hand")
            axis.set_title(name)
            axis.yaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
        axes[0, 0].set_ylabel("share of leads")
        axes[0, -1].legend()
        return to_svg(figure, "suit-lengths")


def signal_of(rest: NDArray[np.bool_]) -> NDArray[np.int64]:
    """What a lead says, given what is left of the suit, `[..., ranks]`: see `busso.tressette.rules`."""
    signal = np.where(rest[..., TWO] | rest[..., THREE], BUSSO, STRISCIO)
    return np.where(rest.any(axis=-1), signal, VOLO)


def _signals(watched: Watched) -> TextTable:
    leads = leads_of(watched)
    held = hands_of(watched)[leads]
    number = np.arange(leads.size)
    after = held.copy()
    after[number, watched.action[leads]] = False
    said = signal_of(after.reshape(-1, SUITS, RANKS)[number, watched.action[leads] // RANKS])
    by_chance = np.zeros(max(_SIGNALS) + 1)
    for card in range(CARDS):
        holders = np.flatnonzero(held[:, card])
        suit = held[holders].reshape(-1, SUITS, RANKS)[:, card // RANKS].copy()
        suit[:, card % RANKS] = False
        by_chance += np.bincount(signal_of(suit), 1 / held[holders].sum(axis=1), by_chance.size)
    rows = [
        [
            f"{name}",
            f"{(said == signal).sum():,}",
            f"{(said == signal).mean():.1%}",
            f"{by_chance[signal] / leads.size:.1%}",
        ]
        for signal, name in _SIGNALS.items()
    ]
    caption = (
        "What its leads say of the rest of the suit; which follows from the card, so that choosing it is choosing this."
    )
    return TextTable(("signal", "leads", "share", "of a card at random"), rows, caption)
