"""`game(...)`: a user's game from its state record, six functions and a layout; everything else has a default."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from functools import cache
from typing import Any

import numpy as np

from busso.base.bounds import check_bounds
from busso.base.errors import InputError
from busso.base.own_files import PREFIX
from busso.cards.compiled.batch import Rules
from busso.cards.compiled.jit import njit
from busso.cards.game import MAX_ACTIONS, Game
from busso.cards.hand import NO_SEEDS, Hand, Replayed
from busso.cards.own.layout import Layout
from busso.cards.packages import REWARD_SCALE
from busso.cards.presentation import Judging, Presentation, Row, presentation_of
from busso.cards.records import field, integer, list_of

SEED = "seed"  # field of the state
_MOST_ACTIONS = 100_000
_CLOSE = 1e-3  # tolerance of results, which are float32


@dataclass(frozen=True)
class NoOptions:
    """A game without rule options."""


def game(  # noqa: PLR0913 - six functions, and what has a default
    state: np.dtype[np.void],
    deal: Callable[..., None],
    legal: Callable[..., Any],
    apply: Callable[..., None],
    observe: Callable[..., None],
    over: Callable[..., Any],
    returns: Callable[..., None],
    *,
    actions: Sequence[str],
    sees: Layout,
    name: str | None = None,
    seats: int = 2,
    teams: Sequence[Sequence[int]] | None = None,
    unit: str = "points",
    total: float | None = None,
    rewards: Mapping[str, Callable[..., None]] | None = None,
    scale: float | None = None,
    policies: Iterable[Callable[..., int]] | Mapping[str, Callable[..., int]] = (),
    options: Any = NoOptions,
    put_options: Callable[[np.void, Any], None] | None = None,
    record: Callable[..., dict[str, Any]] | None = None,
    read: Callable[..., Any] | None = None,
    presentation: Presentation | None = None,
    **more: Any,
) -> Game:
    """Make a game in one file; docs/reference/own_game.md is the contract.

    `more` are other fields of `busso.cards.game.Game`. Raises InputError that names the argument.
    """
    sides = tuple(map(tuple, teams or [(seat,) for seat in range(seats)]))
    keeps_seed, seats_taken, varying = record is None, more.get("seats_taken"), more.pop("varying", None)
    dtype = _aligned(state, keeps_seed)
    if keeps_seed != (read is None):
        raise InputError("record", "record= and read= belong together", "pass both or neither")
    _check(dtype, actions, sees, sides, seats, seats_taken)
    rules = Rules(_keeping_seed(deal) if keeps_seed else deal, legal, apply, observe, over, returns)
    chosen = options() if isinstance(options, type) else options
    if taken := {each.name for each in fields(chosen)} & {"name", "reward", REWARD_SCALE}:
        raise InputError("options", f"{min(taken)} is the setting game.{min(taken)} of every game", "rename the option")
    unit_reward = scale if scale is not None else abs(total or 2.0) / 2
    if not unit_reward > 0:
        raise InputError("scale", f"expected a number above 0, not {scale!r}")
    texts = tuple(actions)

    def vary(new: Any) -> Mapping[str, Any]:
        return {**({"record": _recorder(lambda: made, new)} if keeps_seed else {}), **(varying(new) if varying else {})}

    made = Game(
        name=name or own_name(),
        options=chosen,
        blank_for=_blank_for(dtype, put_options or _by_names),
        rules=rules,
        seats=seats,
        teams=sides,
        actions=len(texts),
        bits=sees.bits,
        unit=unit,
        total=None if total is None else float(total),
        rewards=dict(rewards) if rewards is not None else default_rewards(rules, sides, unit_reward, seats_taken),
        policies=_by_name(policies),
        action_text=texts.__getitem__,
        record=record or _recorder(lambda: made, chosen),
        read=read or _reader(lambda: made),
        layout=sees,
        presentation=presentation or _presented(texts, sees, unit, unit_reward, len(sides)),
        varying=vary,
        **more,
    )
    return made


def variant(of: Game, name: str | None = None, **changes: Any) -> Game:
    """Replace parts of a game: `variant(TRESSETTE, rewards={"tricks": by_tricks})`.

    The variant has its own name, also in records, and the presentation of the original. If rules and observation are
    unchanged, networks of the original play it, including its champion.
    """
    if changes.keys() & {"rules", "blank_for", "options"} and not changes.keys() >= {"record", "read"}:
        raise InputError("variant", "other rules need their own records", "pass record= and read=, or use game(...)")
    called = name or own_name()

    def renamed(record: Callable[..., dict[str, Any]]) -> Callable[..., dict[str, Any]]:
        return lambda start, actions: record(start, actions) | {"game": called}

    def vary(new: Any) -> Mapping[str, Any]:
        found = dict(of.varying(new) if of.varying else {})
        own = found.pop("record", None)  # of an own game, whose records name its options
        return found if own is None or "record" in changes else {**found, "record": renamed(own)}

    def read(found: dict[str, Any]) -> Replayed:
        hands, outcome = of.read(found | {"game": of.name})
        for hand in hands:
            hand.game = made.configure(asdict(hand.game.options))
        return Replayed(hands, outcome)

    if "policies" in changes:
        changes["policies"] = _by_name(changes["policies"])
    parts: dict[str, Any] = {"name": called, "record": renamed(of.record), "read": read, "varying": vary, "base": of}
    made = replace(of, **{**parts, "presentation": presentation_of(of), **changes})
    return made


def own_name() -> str:
    """Return the default name of a game made where the caller is called: `war` in ./war.py, `kuhn` in package kuhn."""
    module = str(sys._getframe(2).f_globals.get("__name__", ""))
    return module.removeprefix(f"{PREFIX}.").partition(".")[0].strip("_")


# ---------------------------------------------------------------------- checks


def _by_name(policies: Iterable[Callable[..., int]] | Mapping[str, Callable[..., int]]) -> Mapping[str, Any]:
    named = list(policies.items() if isinstance(policies, Mapping) else ((each.__name__, each) for each in policies))
    names = ["random", *(name for name, _ in named)]
    if twice := [name for name in names if names.count(name) > 1]:
        problem = "is always there" if "random" in twice else "is the name of two"
        raise InputError("policies", f"{twice[0]} {problem}", "name them: policies={'NAME': function}")
    return dict(named)


def _aligned(state: np.dtype[np.void], with_seed: bool) -> np.dtype[np.void]:
    """Return the aligned record type, with a field for the seed if the default records need it."""
    found = np.dtype(state)
    known = found.fields
    if known is None or "turn" not in known:
        raise InputError("STATE", "a NumPy record type with a field `turn`")
    if with_seed and SEED in known:
        raise InputError("STATE", f"the field {SEED} is reserved: busso keeps it for records", "rename your field")
    own = [(name, known[name][0]) for name in found.names or ()]
    if flags := [name for name, kind in own if kind.shape and kind.base == np.bool_]:
        raise InputError("STATE", f"{flags[0]}: Numba cannot compile an array of booleans in a record", "use np.uint8")
    return np.dtype([*own, *([(SEED, np.uint64)] if with_seed else [])], align=True)


def _keeping_seed(deal: Callable[..., None]) -> Callable[..., None]:
    @njit
    def deal_and_keep(state: Any, seed: Any) -> None:
        deal(state, seed)
        state.seed = seed

    return deal_and_keep


def _check(
    dtype: np.dtype[np.void],
    actions: Sequence[str],
    sees: Layout,
    sides: tuple[tuple[int, ...], ...],
    seats: int,
    seats_taken: str | None,
) -> None:
    if not isinstance(sees, Layout):
        raise InputError("sees", f"expected a Layout, not {type(sees).__name__}", "write SEES = Layout(hand=40, ...)")
    if not 0 < len(actions) <= MAX_ACTIONS:
        hint = "let a seat decide in two steps" if actions else ""
        raise InputError("actions", f"expected 1 to {MAX_ACTIONS} names, not {len(actions)}", hint)
    if wrong := [each for each in actions if not isinstance(each, str) or not each]:
        raise InputError("actions", f"expected names, not {wrong[0]!r}")
    if twice := [each for each in actions if list(actions).count(each) > 1]:
        raise InputError("actions", f"{twice[0]} appears twice")
    if sorted(seat for side in sides for seat in side) != list(range(seats)):
        raise InputError("teams", f"expected each of the {seats} seats once, not {sides}")
    if seats_taken is not None and seats_taken not in (dtype.names or ()):
        raise InputError("seats_taken", f"{seats_taken!r} is not a field of STATE")


def _blank_for(dtype: np.dtype[np.void], put_options: Callable[[np.void, Any], None]) -> Callable[[Any], np.void]:
    """Return the `blank_for` of a game whose options are written by `put_options`."""

    def blank(options: Any) -> np.void:
        check_bounds("game", options)
        state = np.zeros(1, dtype)
        put_options(state[0], options)
        return state[0]

    return blank


def _by_names(state: np.void, options: Any) -> None:
    """Write each option into the field of the state with its name."""
    for known in fields(options):
        name, value = known.name, getattr(options, known.name)
        if name not in (state.dtype.names or ()):
            raise InputError(f"game.{name}", "not the name of a field of STATE, so no rule sees it")
        try:
            state[name] = value
        except (ValueError, TypeError, OverflowError) as error:
            raise InputError(f"game.{name}", error) from None
        if not np.all(state[name] == value):  # NumPy truncates texts and fractions
            kind = state[name].dtype
            raise InputError(f"game.{name}", f"{value!r} does not fit its field of STATE, of type {kind}")


def _presented(actions: tuple[str, ...], sees: Layout, unit: str, scale: float, sides: int) -> Presentation:
    """Return the presentation by the layout, with the value of one `result` in the game's unit."""

    def rows(hand: Hand, seat: int) -> Iterator[Row]:
        words = hand.game.observe(hand.state, seats=np.array([seat], np.uint8))[0]
        for block in sees.blocks:
            yield Row(block.label, block.texts(words, actions), cards=not (block.is_number or block.things))

    def judged(game: Game) -> Mapping[str, tuple[str, float, float]]:
        """Convert one `result` to the game's unit: what one side gains, the others lose together."""
        worth = scale if sides == 1 else 2 * scale * (sides - 1) / sides
        return {**Judging().units(game), "result": (unit, worth, (game.total or 0.0) / game.seats)}

    ahead = (unit, scale) if sides == 1 else (f"{unit} more than the others", 2 * scale)
    return Presentation(
        rows=rows,
        units=lambda game: {"result": ahead, "win": ("wins minus losses", 1.0)},
        judging=Judging(units=judged),
    )


# ---------------------------------------------------------------------- rewards


def default_rewards(
    rules: Rules, teams: Sequence[Sequence[int]], scale: float, taken: str | None = None
) -> dict[str, Callable[..., None]]:
    """Return the rewards `result` and `win`, paid at the end of the game to each side, which is a team or a seat.

    `result` is the side's result minus the mean of the others, divided by twice `scale`; for a side alone, its result
    divided by `scale`. `win` is 1 for the side with the highest result, 0 for sides that tie for it, and -1 for the
    others; for a side alone, the sign of its result. `taken` is the field with the number of seats taken, if it varies:
    an empty seat is no side, and its 0 neither wins against losses nor counts in a mean.
    """
    seats, heads, unit = sum(map(len, teams)), np.array([min(team) for team in teams]), np.float32(scale)

    @njit
    def seated(state: Any) -> Any:
        return seats if taken is None else state[taken]

    return {
        "result": _at_end(rules, seated, heads, _ahead, unit),
        "win": _at_end(rules, seated, heads, _won, unit),
    }


def _at_end(rules: Rules, seated: Any, heads: Any, worth: Callable[..., Any], unit: Any) -> Callable[..., None]:
    """Return a reward of `worth(results of the sides, own result, unit)` for each taken seat of an ended game."""
    over, returns = rules.over, rules.returns

    @njit
    def reward(before: Any, action: int, after: Any, totals: Any) -> None:
        if over(after):
            out = np.zeros(totals.size, np.float32)
            returns(after, out)
            sides = out[heads[heads < seated(after)]]
            for seat in range(seated(after)):
                totals[seat] += worth(sides, out[seat], unit)

    return reward


def with_divided_result(game: Game, divisor: float) -> Game:
    """Return the game with its reward `result` divided, and with units that turn values back into results."""
    shown = presentation_of(game)
    judging = replace(shown.judging, units=lambda of: _multiplied(shown.judging.units(of), divisor))
    presentation = replace(shown, judging=judging, units=lambda of: _multiplied(shown.units(of), divisor))
    reward = _divided(game.rewards["result"], game.rules.over, divisor)
    return replace(game, rewards={**game.rewards, "result": reward}, presentation=presentation)


def _multiplied(units: Mapping[str, Any], factor: float) -> Mapping[str, Any]:
    found = {name: (text, worth * factor, *more) for name, (text, worth, *more) in units.items() if name == "result"}
    return {**units, **found}


@cache  # compiled once
def _divided(reward: Callable[..., None], over: Callable[..., Any], divisor: float) -> Callable[..., None]:
    factor = np.float32(1 / divisor)

    @njit
    def divided(before: Any, action: int, after: Any, totals: Any) -> None:
        if over(after):
            paid = np.zeros(totals.size, np.float32)
            reward(before, action, after, paid)
            for seat in range(totals.size):
                totals[seat] += factor * paid[seat]

    return divided


@njit
def _ahead(results: Any, own: Any, unit: Any) -> Any:
    others = results.size - 1
    if others == 0:
        return own / unit
    return (own - (results.sum() - own) / np.float32(others)) / (np.float32(2.0) * unit)


@njit
def _won(results: Any, own: Any, unit: Any) -> Any:
    if results.size == 1:
        return np.sign(own)
    best, as_good = results.max(), 0
    for result in results:
        as_good += result == best
    return np.float32(-1.0) if own < best else np.float32(1.0 if as_good == 1 else 0.0)


# ---------------------------------------------------------------------- records


def _recorder(game: Callable[[], Game], options: Any) -> Callable[[np.void, list[int]], dict[str, Any]]:
    """Return the `record` of a game under these options: `{"game", "options", "seed", "actions", "returns"}`.

    Options at their defaults are left out, as are the returns of a game that has not ended.
    """

    def record(start: np.void, actions: list[int]) -> dict[str, Any]:
        made = game()
        chosen = {known.name: getattr(options, known.name) for known in fields(options)}
        changed = {name: value for name, value in chosen.items() if value != getattr(made.options, name)}
        found = {"game": made.name, **({"options": changed} if changed else {}), "seed": int(start[SEED])}
        played = _played(made.configure(asdict(options)), int(start[SEED]), actions)
        found["actions"] = [made.action_text(action) for action in actions]
        return found | ({"returns": played.returns()} if played.over else {})

    return record


def _reader(game: Callable[[], Game]) -> Callable[[dict[str, Any]], Replayed]:
    """Return the `read` for these records.

    It raises InputError that names a bad field, an action that breaks a rule, or returns that differ from those of the
    replayed game, as after a change of the rules.
    """

    def read(record: dict[str, Any]) -> Replayed:
        made = _configured(game(), record.get("options", {}))
        texts = list_of(field(record, "actions"), "actions", None)
        if len(texts) > _MOST_ACTIONS:
            raise InputError("actions", f"more than {_MOST_ACTIONS:,}")
        names = {made.action_text(action): action for action in range(made.actions)}
        actions = []
        for number, text in enumerate(texts, start=1):
            if not isinstance(text, str) or text not in names:
                raise InputError(f"action {number}", f"unknown action {text!r} of {made.name}")
            actions.append(names[text])
        hand = _played(made, integer(record, SEED, 0, 2**64 - 1), actions)
        if not hand.over:
            raise InputError("actions", f"the game is not over after {len(actions)}")
        _check_returns(record.get("returns"), hand.returns())
        return Replayed([hand], {"returns": hand.returns()})

    return read


def _played(game: Game, seed: int, actions: list[int]) -> Hand:
    hand = Hand(game, NO_SEEDS, game.deal(np.array([seed], np.uint64)))
    for number, action in enumerate(actions, start=1):
        if not hand.may(action):
            legal = " ".join(map(game.action_text, hand.legal))
            problem = f"seat {hand.turn} may not play {game.action_text(action)}; legal: {legal}"
            raise InputError(f"action {number}", "the game is over" if hand.over else problem)
        hand.play(action)
    return hand


def _configured(game: Game, options: object) -> Game:
    if not isinstance(options, Mapping):
        raise InputError("options", f"not an object: {options!r}")
    try:
        return game.configure(options)
    except (ValueError, TypeError) as error:
        raise InputError("options", error) from None


def _check_returns(recorded: object, found: list[float]) -> None:
    """Raise InputError for recorded returns that differ from those of the replayed game."""
    if recorded is None:
        return
    numbers = list_of(recorded, "returns", len(found))
    if not all(isinstance(each, int | float) and not isinstance(each, bool) for each in numbers):
        raise InputError("returns", f"expected numbers only, not {numbers!r}")
    if not np.allclose(numbers, found, atol=_CLOSE):
        raise InputError(
            "returns", f"the record has {numbers}, the replayed game {found}", "its rules have changed since"
        )
