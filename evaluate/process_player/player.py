"""A player in another program: each decision is a line of JSON, and so is the answer."""

from __future__ import annotations

import json
import logging
from collections import Counter
from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from busso.cards.compiled.bits import unpack
from busso.cards.game import Game, States
from busso.cards.play import Actions, Decisions
from busso.cards.player_kinds import ProcessCommand
from busso.cards.players import RandomPlayer
from busso.cards.presentation import presentation_of
from busso.command.errors import UserError
from busso.evaluate.process_player.program import Program, ProgramError

log = logging.getLogger("evaluate")

PROTOCOL = 1
START_SECONDS = 60.0  # from its start to its answer to the first line
MOST_IN_A_ROW = 10  # faults without a legal action in between
_MOST_LOGGED = 5  # lines, in each process that plays


class ProcessPlayerError(UserError):
    """A program that cannot go on as a player."""


class ProcessPlayer:
    """Asks a program. See docs/howto/tournaments.md for the lines and `busso.cards.play.Player` for the rest.

    Where `forgiving` is set, a decision without a legal answer in time is a fault: it loses that game, in which legal
    actions by chance are played from there on. `faults` counts them by their reason: `illegal`, `silent` or `ended`.
    The program is started again unless it only was `illegal`. Without `forgiving` the first fault raises
    ProcessPlayerError, and so do `MOST_IN_A_ROW` of them and a program that does not start.
    """

    def __init__(self, game: Game, name: str, process: ProcessCommand) -> None:
        self.forgiving, self.faults = False, Counter[str]()
        self._game, self._name, self._process = game, name, process
        self._known, self._random = presentation_of(game).known, RandomPlayer()
        self._names = [game.action_text(action) for action in range(game.actions)]
        self._asked, self._hands, self._in_a_row, self._logged = 0, 0, 0, 0
        self._lost = np.zeros(0, np.bool_)
        self._program: Program | None = None
        self._program = self._started()

    def begin(self, seeds: NDArray[np.uint64]) -> None:
        self._hands += self._lost.size  # of before, so that each hand has a number of its own
        self._lost = np.zeros(seeds.size, np.bool_)
        self._random.begin(seeds)

    def act(self, decisions: Decisions) -> Actions:
        actions = self._random.act(decisions)  # stay where there is one legal action, and in games that are lost
        choice = decisions.legal & (decisions.legal - np.uint64(1)) != 0
        rows = np.flatnonzero(choice & ~self._lost[decisions.games])
        if rows.size:
            for row, action in self._answers(decisions.of(rows)).items():
                actions[rows[row]] = action
        return actions

    def end(self, states: States) -> NDArray[np.bool_]:
        """These are the final states of the games that began: say so, and return which of them are lost by a fault."""
        if self._program is not None:
            for hand, (results, lost) in enumerate(zip(self._game.returns(states), self._lost, strict=True)):
                about = {"type": "end", "hand": self._hands + hand, "results": results.tolist(), "lost": bool(lost)}
                self._program.send(_line(about))
            self._program.flush()
        return self._lost.copy()

    def close(self) -> None:
        """End the program."""
        if self._program is not None:
            self._program.close()
            self._program = None

    # --- lines

    def _started(self) -> Program:
        """A new program that has answered the first line. Raises ProcessPlayerError for one that does not."""
        program, game = Program(self._process.command), self._game
        about = {"type": "hello", "protocol": PROTOCOL, "game": game.name, "options": asdict(game.options)}
        shape = {"seats": game.seats, "teams": game.teams, "actions": self._names, "bits": game.bits}
        program.send(_line(about | shape | {"seconds": self._process.seconds}))
        try:
            answer = _object(program.line(START_SECONDS))
            if answer.get("protocol") != PROTOCOL:
                raise ProgramError("illegal", f"{{'protocol': {PROTOCOL}}} is wanted, not {json.dumps(answer)[:80]}")
        except ProgramError as error:
            program.close()
            raise self._error(f"hello: {error}", program) from None
        return program

    def _lines(self, decisions: Decisions) -> list[str]:
        """A line for each of the decisions: what the seat to move knows, and its legal actions."""
        seen = unpack(decisions.observation, self._game.bits)
        lines = []
        for row, game in enumerate(decisions.games.tolist()):
            state, legal = decisions.states[game], _set_bits(int(decisions.legal[row]))
            seat = int(state["turn"])
            about = {
                "type": "decision",
                "id": self._asked + row,
                "hand": self._hands + game,
                "seat": seat,
                "legal": legal,
                "names": [self._names[action] for action in legal],
                "known": self._known(state, seat),
                "observation": np.flatnonzero(seen[row]).tolist(),
            }
            lines.append(_line(about))
        return lines

    # --- answers

    def _answers(self, decisions: Decisions) -> dict[int, int]:
        """The legal actions that come back, by row; games in which none does are lost."""
        lines, first = self._lines(decisions), self._asked
        self._asked += len(lines)
        waiting, actions, asked = dict(enumerate(lines)), dict[int, int](), None
        while waiting:
            self._program = program = self._program or self._started()
            if program is not asked:  # a new one is asked for all that the one before has not answered
                for line in waiting.values():
                    program.send(line)
                asked = program
            try:
                answer = _object(program.line(self._process.seconds))
                row = answer["id"] - first if type(answer.get("id")) is int else -1
                if row not in waiting:
                    raise ProgramError("illegal", f"{json.dumps(answer)[:80]} answers no open decision")
            except ProgramError as error:
                row = next(iter(waiting))
                self.close()
                self._lose(decisions, row, error.reason, str(error), program)
            else:
                action, legal = answer.get("action"), _set_bits(int(decisions.legal[row]))
                if type(action) is int and action in legal:
                    actions[row], self._in_a_row = action, 0
                else:
                    self._lose(decisions, row, "illegal", f"action {action!r:.40}, legal: {legal}", program)
            del waiting[row]
        return actions

    def _lose(self, decisions: Decisions, row: int, reason: str, said: str, program: Program) -> None:
        """The game of this decision is lost. Raises ProcessPlayerError where that is too much."""
        self._lost[decisions.games[row]] = True
        self.faults[reason] += 1
        self._in_a_row += 1
        said = f"{said} (seat {decisions.seats[row]} of {self._game.name})"
        if not self.forgiving:
            raise self._error(said, program)
        if self._in_a_row >= MOST_IN_A_ROW:
            raise self._error(f"{MOST_IN_A_ROW} faults in a row, the last: {said}", program)
        self._logged += 1
        if self._logged <= _MOST_LOGGED:
            log.warning("%s loses a game: %s%s", self._name, said, _quoted(program))

    def _error(self, said: str, program: Program) -> ProcessPlayerError:
        self.close()
        return ProcessPlayerError(self._name, f"{said}{_quoted(program)}", "docs/howto/tournaments.md has the protocol")


def _quoted(program: Program) -> str:
    words = program.last_words
    return f"; its standard error ends with: {words}" if words else ""


def _line(about: dict[str, Any]) -> str:
    return json.dumps(about, separators=(",", ":"))


def _object(line: bytes) -> dict[str, Any]:
    """The JSON object in a line. Raises ProgramError for anything else."""
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise ProgramError("illegal", f"{line[:80]!r} is no JSON object")
    return found


def _set_bits(word: int) -> list[int]:
    return [bit for bit in range(word.bit_length()) if word >> bit & 1]
