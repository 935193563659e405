"""Evaluation of possible worlds by a network: the likelihood of their past, and play-outs of their future."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from busso.cards.compiled.batch import next_bits
from busso.cards.compiled.bits import bit, has, lowest, popcount
from busso.cards.compiled.jit import njit
from busso.cards.compiled.splitmix import below, mix, uniform
from busso.cards.game import Game, States
from busso.cards.players import ValueNetwork
from busso.tressette.cards import CARDS, RANKS, THIRDS, TWO
from busso.tressette.observation import observe
from busso.tressette.policies import unseen
from busso.tressette.rules import NO_CARD, apply, begin, legal, points

Indices = NDArray[np.int64]
FEWEST = 8  # worlds needed to estimate the error of a difference between two cards


@njit
def _single(mask: np.uint64) -> bool:
    return mask & (mask - np.uint64(1)) == np.uint64(0)


@njit
def _one_of_a_run(state: Any, mask: np.uint64, values: NDArray[np.float32]) -> np.uint64:
    """Return the most valued card of each run: cards of equal thirds, with no card of another seat between them.

    It does not matter which card of a run is played. If leads signal the 2 and the 3, each of these is a separate run.
    """
    talks = state.with_signals and state.turn == state.leader
    others = unseen(state)
    for seat in range(4):
        if state.trick[seat] != NO_CARD:
            others |= bit(state.trick[seat])
    kept, best = np.uint64(0), -1
    for card in range(CARDS):
        if card % RANKS == 0 or has(others, card):
            best = -1
        if has(mask, card):
            apart = talks and card % RANKS >= TWO
            if best >= 0 and not apart and THIRDS[best % RANKS] == THIRDS[card % RANKS]:
                if values[card] <= values[best]:
                    continue
                kept ^= bit(best)
            best = card
            kept |= bit(card)
    return kept


@njit
def runs_of(state: Any, mask: np.uint64, out: NDArray[np.int64]) -> None:
    """Assign run numbers to the legal cards of `mask` (see `one_of_each_run`), `[cards]`; -1 for all others."""
    alone = np.full(CARDS, np.float32(0))
    out[:] = -1
    number = -1
    for card in range(CARDS):
        if has(mask, card):
            before = card - 1
            while before >= 0 and not has(mask, before):
                before -= 1
            together = before >= 0 and popcount(_one_of_a_run(state, bit(before) | bit(card), alone)) == 1
            number += 0 if together else 1
            out[card] = number


@njit(nogil=True)
def one_of_each_run(
    states: Any, games: Indices, masks: NDArray[np.uint64], values: NDArray[np.float32], out: NDArray[np.uint64]
) -> None:
    """Write the legal cards of `states[games]`, only the most valued of each run of equivalent ones."""
    for k in range(games.size):
        out[k] = _one_of_a_run(states[games[k]], masks[k], values[k])


@njit(nogil=True)
def rewind(worlds: Any, dealt: Any) -> None:
    """Write each world as dealt, before the first card."""
    for k in range(worlds.size):
        dealt[k] = worlds[k]
        for seat in range(4):
            dealt[k].hands[seat] |= worlds[k].played[seat]
        begin(dealt[k], worlds[k].opener)


@njit(nogil=True)
def past_choices(past: Any, seats: NDArray[np.uint8], live: Indices, rows: Indices, words: NDArray[np.uint64]) -> int:
    """List those worlds of `live` in which a seat other than `seats[world]` has a choice, with its observation.

    Returns their number n: the first n entries of `rows` are the worlds, of `words` the packed observations.
    """
    count = 0
    for k in live:
        if past[k].turn != seats[k] and not _single(legal(past[k])):
            rows[count] = k
            words[count, :] = np.uint64(0)
            observe(past[k], past[k].turn, words[count])
            count += 1
    return count


@njit(nogil=True)
def distinct_rows(words: NDArray[np.uint64], first: Indices, number: Indices) -> int:
    """Give equal rows of `words` the same `number`, in order of their `first` rows; return how many are distinct."""
    places = 1
    while places < 2 * words.shape[0]:
        places *= 2
    table = np.full(places, -1, np.int64)  # hash table of numbers, with open addressing
    count = 0
    for k in range(words.shape[0]):
        digest = np.uint64(0)
        for word in words[k]:
            digest = mix(digest ^ word)
        place = np.int64(digest & np.uint64(places - 1))
        while table[place] >= 0 and not _equal(words[first[table[place]]], words[k]):
            place = (place + 1) & (places - 1)
        if table[place] < 0:
            table[place], first[count] = count, k
            count += 1
        number[k] = table[place]
    return count


@njit
def _equal(one: NDArray[np.uint64], other: NDArray[np.uint64]) -> bool:
    differing = np.uint64(0)
    for k in range(one.size):
        differing |= one[k] ^ other[k]
    return differing == np.uint64(0)


@njit
def _log_share(values: NDArray[np.float32], mask: np.uint64, card: int, temperature: float, slack: float) -> float:
    """Return the log-probability of `card` by a softmax over the legal cards, mixed with `slack` of uniform play."""
    top, count = values[card], 0
    rest = mask
    while rest != np.uint64(0):
        top = max(top, values[lowest(rest)])
        rest &= rest - np.uint64(1)
        count += 1
    total, rest = 0.0, mask
    while rest != np.uint64(0):
        total += np.exp((values[lowest(rest)] - top) / temperature)
        rest &= rest - np.uint64(1)
    return np.log((1 - slack) * np.exp((values[card] - top) / temperature) / total + slack / count)


@njit(nogil=True)
def weigh_past_choices(
    past: Any,
    worlds: Any,
    rows: Indices,
    values: NDArray[np.float32],
    temperatures: NDArray[np.float64],
    slack: float,
    log_likelihood: NDArray[np.float64],
) -> None:
    """Add to each of `rows` the log-probability, by `values[row]`, of the card that its seat to move played.

    `temperatures` are those of the searching seat's partner and of its opponents.
    """
    for i in range(rows.size):
        k = rows[i]
        mask, card = legal(past[k]), worlds[k].order[past[k].plays]
        opponent = (past[k].turn ^ worlds[k].turn) & 1
        log_likelihood[k] += _log_share(values[i], mask, card, temperatures[opponent], slack)


@njit(nogil=True)
def replay_one(past: Any, worlds: Any, live: Indices) -> int:
    """Replay a card in each of `live`; return how many, moved to the front of `live`, are behind their world."""
    count = 0
    for k in live:
        apply(past[k], worlds[k].order[past[k].plays])
        if past[k].plays < worlds[k].plays:
            live[count] = k
            count += 1
    return count


@njit(nogil=True)
def play_card(worlds: Any, which: Indices, cards: NDArray[np.uint8], out: Any) -> None:
    """Write copies of `worlds[which]` in which the seat to move has played one of `cards`."""
    for i in range(which.size):
        out[i] = worlds[which[i]]
        apply(out[i], cards[i])


@njit(nogil=True)
def to_next_choice(states: Any, live: Indices, masks: NDArray[np.uint64], words: NDArray[np.uint64]) -> int:
    """Play forced cards in `states[live]` until a seat has a choice, or the hand is over.

    Returns the number of games with a choice. These are moved to the front of `live`; `masks` (legal cards) and `words`
    (observations) have the same order.
    """
    count = 0
    for k in live:
        mask = legal(states[k])
        while mask != np.uint64(0) and _single(mask):
            apply(states[k], lowest(mask))
            mask = legal(states[k])
        if mask != np.uint64(0):
            live[count], masks[count] = k, mask
            words[count, :] = np.uint64(0)
            observe(states[k], states[k].turn, words[count])
            count += 1
    return count


@njit(nogil=True)
def play_best(states: Any, live: Indices, masks: NDArray[np.uint64], values: NDArray[np.float32]) -> None:
    """Play the legal card with the greatest value in each of `states[live]`, the first among equals."""
    for i in range(live.size):
        best, rest = lowest(masks[i]), masks[i] & (masks[i] - np.uint64(1))
        while rest != np.uint64(0):
            card = lowest(rest)
            rest &= rest - np.uint64(1)
            if values[i, card] > values[i, best]:
                best = card
        apply(states[live[i]], best)


@njit(nogil=True)
def points_of(states: Any, seats: NDArray[np.uint8], out: NDArray[np.float64]) -> None:
    """Write the points of each seat's team in states whose hand is over."""
    for k in range(states.size):
        out[k] = points(states[k], seats[k] & 1)


@njit(nogil=True)
def resample(
    log_likelihood: NDArray[np.float64],
    games: NDArray[np.int64],
    generators: NDArray[np.uint64],
    picked: NDArray[np.int64],
    times: NDArray[np.int64],
) -> None:
    """Pick worlds for each decision, once per column of `picked`, in proportion to their likelihood.

    Systematic resampling (Kitagawa, 1996). `log_likelihood` is `[decisions, worlds]`. Each picked world appears once in
    `picked[decision]`, in random order; `times` holds how often it was picked, 0 in the remaining columns.
    """
    decisions, samples = picked.shape
    for k in range(decisions):
        weights = np.exp(log_likelihood[k] - log_likelihood[k].max())
        step = weights.sum() / samples
        wanted, world, reached = step * uniform(next_bits(generators, games[k])), 0, weights[0]
        times[k] = 0
        last, count = -1, 0
        for _ in range(samples):
            while reached < wanted and world + 1 < weights.size:
                world += 1
                reached += weights[world]
            if world != last:
                picked[k, count], last = world, world
                count += 1
            times[k, count - 1] += 1
            wanted += step
        for i in range(count - 1):
            j = i + below(next_bits(generators, games[k]), count - i)
            picked[k, i], picked[k, j] = picked[k, j], picked[k, i]
            times[k, i], times[k, j] = times[k, j], times[k, i]


@njit(nogil=True)
def drop_clearly_worse(
    values: NDArray[np.float64],
    worth: NDArray[np.float32],
    times: NDArray[np.int64],
    errors: float,
    alive: NDArray[np.bool_],
) -> None:
    """Remove from `alive` the cards whose value is clearly below the best, by standard `errors`: `[decisions, cards]`.

    The error is that of the mean difference between the two cards on the same worlds. `times`, `[decisions, worlds]`,
    holds the weight of each world; with fewer than `FEWEST` worlds all cards stay. `worth` are the results,
    `[decisions, cards, worlds]`.
    """
    for k in range(len(values)):
        if np.count_nonzero(times[k]) < FEWEST:
            continue
        best, total = values[k].argmax(), times[k].sum()
        for card in np.flatnonzero(alive[k]):
            apart = (worth[k, best] - worth[k, card]).astype(np.float64)
            away = times[k] * (apart - (times[k] * apart).sum() / total)
            if values[k, best] - values[k, card] > errors * np.sqrt((away * away).sum()) / total:
                alive[k, card] = False


class WorldSimulator:
    """Batched queries of one network on many worlds; `rows` counts the rows of its forward passes."""

    def __init__(self, game: Game, network: ValueNetwork, batch: int) -> None:
        self._game = game
        self._network = network
        self._batch = batch  # worlds replayed or played out side by side
        self.rows = 0

    def values(self, words: NDArray[np.uint64]) -> NDArray[np.float32]:
        """Return the values of packed observations, `[rows, actions]`; equal rows are evaluated once."""
        first, number = np.empty(len(words), np.int64), np.empty(len(words), np.int64)
        count = distinct_rows(words, first, number)
        self.rows += count
        found: NDArray[np.float32] = self._network.values(words[first[:count]])[number]
        return found

    def log_likelihood(self, worlds: States, temperatures: NDArray[np.float64], slack: float) -> NDArray[np.float64]:
        """Return the log-likelihood of the actions of all other seats in each world.

        Each seat is assumed to choose by a softmax of the network's values of its observation, divided by a temperature
        (the partner's, the opponents'), and with probability `slack` uniformly among its legal cards. After Rebstock,
        Solinas and Buro (2019), Policy based inference in trick-taking card games.
        """
        out = np.zeros(worlds.size)
        for first in range(0, worlds.size, self._batch):
            part = slice(first, first + self._batch)
            self._weigh(worlds[part], temperatures, slack, out[part])
        return out

    def _weigh(self, worlds: States, temperatures: NDArray[np.float64], slack: float, out: NDArray[np.float64]) -> None:
        past, seats = np.empty_like(worlds), worlds["turn"].copy()
        rewind(worlds, past)
        rows, words = np.empty(worlds.size, np.int64), np.empty((worlds.size, self._game.words), np.uint64)
        live = np.flatnonzero(worlds["plays"] > 0)
        while live.size:
            count = past_choices(past, seats, live, rows, words)
            if count:
                values = self.values(words[:count])
                weigh_past_choices(past, worlds, rows[:count], values, temperatures, slack, out)
            live = live[: replay_one(past, worlds, live)]

    def points(self, worlds: States, which: Indices, cards: NDArray[np.uint8]) -> NDArray[np.float64]:
        """Return the mover's team points after it plays `cards` in `worlds[which]` and all seats play greedily."""
        out = np.empty(which.size)
        for first in range(0, which.size, self._batch):
            part = slice(first, first + self._batch)
            self._play_out(worlds, which[part], cards[part], out[part])
        return out

    def _play_out(self, worlds: States, which: Indices, cards: NDArray[np.uint8], out: NDArray[np.float64]) -> None:
        states = np.empty(which.size, worlds.dtype)
        play_card(worlds, which, cards, states)
        masks, words = np.empty(which.size, np.uint64), np.empty((which.size, self._game.words), np.uint64)
        live = np.arange(which.size)
        while count := to_next_choice(states, live, masks, words):
            live = live[:count]
            play_best(states, live, masks[:count], self.values(words[:count]))
        points_of(states, worlds["turn"][which], out)
