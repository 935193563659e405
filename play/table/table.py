"""Table: one game after another, single or in matches, with people and players in its seats.

It is determined by the setup and the people's actions. A player is reseeded for every decision from the deal and the
number of the move, so the same line of play gets the same replies, also after `undo` and after a save.
"""

import copy
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import compress
from typing import Any

from busso.cards.compiled.splitmix import derive, stream
from busso.cards.game import Game
from busso.cards.hand import Hand, Move
from busso.cards.match import Matches, in_match, match_rules
from busso.cards.play import IllegalActionError, Player
from busso.play.table.seats import HUMAN, seated_player

_REPLIES = 0x7265706C79 << 16  # salt of the replies, by the number of the move


@dataclass(frozen=True)
class Setup:
    """Setup of a table: the game, each seat's player (`human` or another), the seed, the score of a match."""

    game: Game
    seats: tuple[str, ...]
    seed: int
    match: int | None = None


@dataclass
class Score:
    """Finished games or matches: their number, ties, wins by team, totals by seat."""

    games: int = 0
    ties: int = 0
    wins: list[int] = field(default_factory=list)
    totals: list[float] = field(default_factory=list)

    def add(self, results: list[float], teams: tuple[tuple[int, ...], ...], occupied: list[bool]) -> None:
        """Count a game by the results of the `occupied` seats; a single seat wins with more than 0."""
        self.games += 1
        self.totals = [total + result for total, result in zip(self.totals, results, strict=True)]
        best = max(compress(results, occupied))
        winners = [k for k, seats in enumerate(teams) if any(occupied[s] and results[s] == best for s in seats)]
        if len(teams) == 1:
            winners = [0] if best > 0 else [] if best < 0 else [0, 0]
        if len(winners) > 1:
            self.ties += 1
        elif winners:
            self.wins[winners[0]] += 1


class Table:
    """People and players at one game, with the first hand dealt. Raises ValueError, and as `player_of` does."""

    def __init__(self, setup: Setup, player_of: Callable[[Game, str], Player] = seated_player) -> None:
        if len(setup.seats) != setup.game.seats:
            raise ValueError(f"{setup.game.name} has {setup.game.seats} seats, not {len(setup.seats)}")
        if setup.match is not None:
            match_rules(setup.game, setup.match)
        self.setup, self.game = setup, setup.game
        names = dict.fromkeys(name for name in setup.seats if name != HUMAN)
        self.players = {name: player_of(setup.game, name) for name in names}
        self.score = Score(wins=[0] * len(self.game.teams), totals=[0.0] * self.game.seats)
        self.number = 0  # index of the current game or match
        self.finished: Hand | None = None  # the latest finished hand, possibly of an earlier game
        self.begin(0)

    def begin(self, number: int) -> None:
        """Deal the first hand of a game or match, which follows from the seed and its number, from 0."""
        self.number = number
        self.score_before = copy.deepcopy(self.score)  # without this game
        self._seeds = stream(self.setup.seed, "play", number, 1)
        self.matches = Matches(self.game, self._seeds, self.setup.match) if self.setup.match is not None else None
        self.hands: list[Hand] = []  # of this game or match
        self.records: list[dict[str, Any]] = []  # of finished hands
        self._deal()

    def _deal(self) -> None:
        seeds, states = (self._seeds, self.game.deal(self._seeds)) if self.matches is None else self.matches.deal()
        self.hand = Hand(self.game, seeds, states)
        self.hands.append(self.hand)
        if self.hand.over:
            self._count()

    @property
    def game_over(self) -> bool:
        """True if the game, or the match, is over."""
        return self.hand.over and (self.matches is None or not self.matches.running.size)

    @property
    def people(self) -> list[int]:
        """Seats of people."""
        return [seat for seat, name in enumerate(self.setup.seats) if name == HUMAN]

    @property
    def turn(self) -> int | None:
        """The seat to move; None between hands."""
        return self.hand.turn

    @property
    def person_to_move(self) -> bool:
        """True if it is a person's turn."""
        return self.turn is not None and self.setup.seats[self.turn] == HUMAN

    @property
    def match_score(self) -> list[int] | None:
        """Score by team of the match's finished hands; None for single games."""
        return None if self.matches is None else self.matches.scores[0].tolist()

    def deal(self) -> None:
        """Deal the next hand, of the match or of a new game. Raises ValueError while one is being played."""
        if not self.hand.over:
            raise ValueError("the hand is not over")
        if self.game_over:
            self.begin(self.number + 1)
        else:
            self._deal()

    def play(self, action: int) -> Move:
        """Play for the seat to move. Raises ValueError, one line, for an illegal action."""
        move = self.hand.play(action)
        if self.hand.over:
            self._count()
        return move

    def reply(self) -> Move:
        """Let the player to move play. Raises ValueError if it is no player's turn."""
        if self.turn is None or self.person_to_move:
            raise ValueError("it is not a player's turn")
        player = self.players[self.setup.seats[self.turn]]
        player.begin(derive(self.hand.seeds, _REPLIES + len(self.hand.moves)))
        try:
            action = int(player.act(self.hand.decisions())[0])
        except IllegalActionError as error:
            raise error.with_seed(self.hand.seeds[0]) from error
        return self.play(action)

    def undo(self) -> bool:
        """Go back to the latest decision of a person in this hand; return False if there is none or it is over."""
        mine = [k for k, move in enumerate(self.hand.moves) if self.setup.seats[move.seat] == HUMAN]
        if self.hand.over or not mine:
            return False
        self.hand.back_to(mine[-1])
        return True

    def _count(self) -> None:
        self.finished = self.hand
        record, occupied = self.hand.record(), self.game.occupied(self.hand.state)[0].tolist()
        if self.matches is None:
            self.records.append(record)
            self.score.add(self.hand.returns(), self.game.teams, occupied)
            return
        name = f"{self.setup.seed}-{self.number + 1}"
        place = (self.matches.number + 1, self.matches.scores[0].tolist())
        self.records.append(in_match(record, name, self.setup.match or 0, *place))
        self.matches.add(self.hand.state)
        if self.game_over:
            self.score.add(self.matches.results()[0].tolist(), self.game.teams, occupied)


@dataclass
class WatchedTable:
    """Spectators' table, where no person plays, with the attributes of `Table` that boards use."""

    setup: Setup
    hand: Hand
    score: Score
    match_score: list[int] | None = None
    people: tuple[int, ...] = ()

    @property
    def game(self) -> Game:
        """The game being played."""
        return self.setup.game

    @property
    def game_over(self) -> bool:
        """True if the hand is over."""
        return self.hand.over


ShownTable = Table | WatchedTable
