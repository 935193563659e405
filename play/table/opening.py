"""Opening of a table, from the settings or from a save."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from busso.cards.hand import Hand
from busso.command.settings.game import load_configured_game
from busso.play.coach.hints import Coach
from busso.play.table.ledger import Ledger
from busso.play.table.saves import game_of, read_save, restore
from busso.play.table.session import Session
from busso.play.table.settings import Given, PlaySettings, check_match, check_same, seats_of
from busso.play.table.table import Setup, Table
from busso.play.views import events, result, view


def open_session(settings: PlaySettings, given: Given, welcome: Any = lambda game, seed: None) -> Session:
    """Open the table of these settings, or that of an existing save; `given` are the overrides.

    `welcome(game, seed)` is called as soon as both are known. Raises SettingsError, SaveError, CheckpointError and
    OSError.
    """
    path = Path(settings.save) if settings.save is not None else None
    saved = read_save(path) if path is not None and path.exists() else None
    if path is not None and saved is not None:
        group, seed, game = saved["game"], saved["seed"], game_of(path, saved)
        check_same(path, saved, settings, given, game)
        seated: Callable[[], Table] = partial(restore, path, saved)
    else:
        group, seed, game = settings.game, settings.chosen_seed(), load_configured_game(settings.game)
        check_match(settings, game)
        seated = partial(Table, Setup(game, seats_of(settings, game), seed, settings.match))
    welcome(game, seed)
    coach = Coach(game, group, settings.hint)
    ledger = Ledger(Path(settings.record)) if settings.record is not None else None
    return Session(seated(), coach, group, ledger, path, restored=saved is not None)


def warm_up(session: Session) -> None:
    """Play the latest deal to its end, on copies, to compile everything now."""
    for choice in (0, -1):  # always the first legal action, then always the last
        hand = Hand(session.table.game, session.table.hand.seeds, session.table.hand.start)
        while not hand.over:
            move = hand.play(hand.legal[choice])
            view(hand, move.seat)
            events(hand, move)
        result(hand)
        hand.returns()
        hand.record()
