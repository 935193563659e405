"""A game played out, decision by decision, with the values of what was played and of what else was legal."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cards.game import Game
from evaluate.report.content import Block, Figure, Section, Table, Text
from evaluate.report.drawing import look, new_figure, style, to_svg
from evaluate.report.sections.observing import Watched
from evaluate.report.sections.solver import Solver
from spike.cards import NO_CARD, VALUES
from spike.state import BUYING, EXCHANGE
from tressette.cards import CARDS, SUITS, card_text
from tressette.rules import SEATS, TRICKS

_OTHERS = 4  # that were legal, and are named beside what was played
_MOST = 80  # decisions of one game that are shown
_SMALL = 6  # games shown where a game has a decision or two


def section(watched: Watched, unit: str, scale: float, solver: Solver | None = None) -> Section:
    """The first game that was watched; of a game for one player, the first few."""
    game = watched.agent.game
    count = _SMALL if game.seats == 1 else 1
    rows = np.flatnonzero(watched.game < count)
    rows = rows[np.argsort(watched.game[rows], kind="stable")]
    shown = rows[:_MOST]
    blocks: list[Block] = [Text(_lead(watched, unit, count))]
    if watched.agent.network is not None and game.seats > 1:
        blocks.append(_figure(watched, rows, unit, scale))
    blocks.append(_table(watched, shown, scale, solver))
    if shown.size < rows.size:
        blocks.append(Text(f"The first {shown.size} of its {rows.size} decisions."))
    title = {"tressette": "A hand played out"}.get(game.name, "A game played out" if count == 1 else "Games played out")
    return Section(title, blocks)


def _lead(watched: Watched, unit: str, count: int) -> str:
    game, agent = watched.agent.game, watched.agent
    who = f"against `{agent.opponent_name}`, whose decisions are left out" if agent.opponent else "in all seats"
    text = f"The agent {who}." if game.seats > 1 else f"The first {count} games."
    if agent.network is not None:
        text += (
            f" A value, in {unit}, is what the seat expects from there to the end, by the network; beside it the legal "
            f"actions of the next greatest values."
        )
    if game.name == "tressette":
        text += " Solved: the points of its team with best play of all, all hands open, where that is quickly found."
        text += _dealt(watched)
    if game.seats > 1:
        numbers = ", ".join(f"{result:g}" for result in watched.results[0][: _taken(watched)])
        text += f" The result by seat, in {game.unit}: {numbers}."
    return text


def _taken(watched: Watched) -> int:
    first = watched.states[watched.game == 0][:1]
    return int(watched.agent.game.taken(first)[0].sum())


def _dealt(watched: Watched) -> str:
    """The four hands before the first card."""
    first = np.flatnonzero(watched.game == 0)[0]
    state = watched.states[first]
    held = [int(state["hands"][seat]) | int(state["played"][seat]) for seat in range(SEATS)]
    lines = [
        f"* seat {seat}: "
        + " ".join(f"`{card_text(card)}`" for card in reversed(range(CARDS)) if held[seat] >> card & 1)
        for seat in range(SEATS)
    ]
    return " Hands as dealt:\n\n" + "\n".join(lines) + "\n\nSeats 0 and 2 play against 1 and 3."


def _table(watched: Watched, rows: NDArray[np.int64], scale: float, solver: Solver | None) -> Table:
    game, with_values = watched.agent.game, watched.agent.network is not None
    solved = None if solver is None else _solved(watched, rows, solver)
    head = (["game"] if game.seats == 1 else ["seat"]) + ["situation", "plays"]
    columns = [*head, *(["value", "next best"] if with_values else ["also legal"]), *(["solved"] if solved else [])]
    lines, marked = [], []
    for number, row in enumerate(rows.tolist()):
        who = str(watched.game[row] + 1 if game.seats == 1 else watched.seat[row])
        action = int(watched.action[row])
        cells = [who, situation(game, watched.states[row], int(watched.seat[row])), game.action_text(action)]
        others = [other for other in np.flatnonzero(watched.legal[row]).tolist() if other != action]
        if with_values:
            values = watched.values[row] * scale
            others = sorted(others, key=lambda other: -float(values[other]))
            named = [f"{game.action_text(other)} {values[other]:+.2f}" for other in others[:_OTHERS]]
            cells += [f"{values[action]:+.2f}", _listed(named, len(others))]
        else:
            cells.append(_listed([game.action_text(other) for other in others[:_OTHERS]], len(others)))
        if solved:
            cells.append(solved[number])
        if game.name == "tressette" and watched.states[row]["plays"] % SEATS == 0:
            marked.append(number)
        lines.append(cells)
    caption = "Marked: the lead of each trick." if marked else ""
    words = [1, 2, 4] if with_values else [1, 2, 3]
    return Table(columns, lines, caption, left=words, marked=marked)


def _listed(named: list[str], count: int) -> str:
    more = f", {count - len(named)} more" if count > len(named) else ""
    return ", ".join(named) + more


def _solved(watched: Watched, rows: NDArray[np.int64], solver: Solver) -> list[str]:
    """What the card leads to, and what the best would, in points of the whole hand; empty where that takes long."""
    late = watched.states["plays"][rows] >= CARDS - SEATS * 6
    values = solver.values(watched.states[rows[late]])
    texts = iter(
        f"{own:.0f}" if own == best else f"{own:.0f}, best {best:.0f}"
        for own, best in zip(
            values[np.arange(len(values)), watched.action[rows[late]]], values.max(axis=1), strict=True
        )
    )
    return [next(texts) if known else "" for known in late]


def situation(game: Game, state: np.void, seat: int) -> str:
    """What lies on the table and is in the hand, as far as the seat sees it."""
    if game.name == "tressette":
        return _tressette(state, seat)
    if game.name == "spike":
        return _spike(state, seat)
    if game.model is not None:
        return _small(game, state)
    return ""


def _tressette(state: np.void, seat: int) -> str:
    trick, leader = int(state["plays"]) // SEATS, int(state["leader"])
    lying = [int(state["trick"][(leader + k) % SEATS]) for k in range(int(state["plays"]) % SEATS)]
    text = f"trick {min(trick, TRICKS - 1) + 1}"
    return text + (": leads" if not lying else ": " + " ".join(card_text(card) for card in lying))


def _spike(state: np.void, seat: int) -> str:
    cards = [int(card) for card in state["hands"][seat]]
    values = [f"{VALUES[card]:+d}" for card in cards]
    spike, bought = int(state["spikes"][seat]), int(state["bought"])
    text = f"hand {int(state['hands_played']) + 1}, round {state['round']}: {' '.join(values)}"
    if spike != NO_CARD:
        text += f", spike {VALUES[spike]:+d}"
    if bought != NO_CARD and state["phase"] in (BUYING, EXCHANGE):
        text += f", bought {VALUES[bought]:+d}"
    return f"{text}; pool {state['pool']}, own {state['credits'][seat]}"


def _small(game: Game, state: np.void) -> str:
    assert game.model is not None
    model = game.model(game.options, next(iter(game.rewards)))
    return model.state_text(int(model.index(state)))


def _figure(watched: Watched, rows: NDArray[np.int64], unit: str, scale: float) -> Figure:
    """Values of what was played over the game, a line for each seat."""
    with style():
        figure, axes = new_figure(2.3)
        axis = axes[0, 0]
        seats = np.unique(watched.seat[rows])
        for number, seat in enumerate(seats.tolist()):
            mine = np.flatnonzero(watched.seat[rows] == seat)
            axis.plot(
                mine + 1,
                watched.chosen[rows[mine]] * scale,
                marker="o",
                markersize=3,
                label=f"seat {seat}",
                **look(number),
            )
        axis.axhline(0, color="#040506", linewidth=1)
        axis.set_xlim(0, rows.size + 1)
        axis.set_xlabel("decision")
        axis.set_ylabel(f"value ({unit})")
        figure.legend(loc="outside lower left", ncols=min(8, SUITS + len(seats)))
        svg = to_svg(figure, "played")
    return Figure(
        "played", svg, "The value of what was played, by decision and seat.", "Values of what each seat played."
    )
