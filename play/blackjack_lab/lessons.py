"""Monte Carlo, TD and Q-learning of one game side by side, with adjustable settings and the text of their progress."""

import math
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

from busso.cards.game import Game, States
from busso.command.settings.checks import SettingsError, check_range
from busso.command.settings.compose import settings_from_dict
from busso.command.settings.game import load_configured_game
from busso.play.blackjack_lab.learning import FULL, METHODS, BackgroundLearner, LearningProcess, Subject
from busso.play.blackjack_lab.value_table import QUANTITIES, place_of
from busso.play.language import Language
from busso.play.table.session import Session
from busso.play.table.sitting import Sitting
from busso.play.table.speech import Speech
from busso.train.settings.tabular import TabularSettings

SPEEDS = (100, 10_000, FULL)  # episodes per second
MIN_VISITS = 100  # states with fewer visits do not count in the errors
RULES = ("discount", "decks", "soft_17", "ties")
_POLICY, _LIMITS = "hit_below_", (4, 21)
RUNS, PAUSED, PREPARES = "●", "○", "…"
_COLUMNS = {"games": 10, "rate": 6, "mean": 6, "greatest": 6, "right": 6, "loss": 7}


@dataclass(frozen=True)
class LessonChoices:
    """Adjustable settings: the `epsilon` of Q-learning, the `policy` that MC and TD evaluate, the common speed."""

    epsilon: float = 0.4
    policy: str = "hit_below_14"
    speed: int = SPEEDS[1]


class AdjustedSettings(NamedTuple):
    """Adjusted group `game` and learning choices."""

    settings: dict[str, Any]
    choices: LessonChoices


def typed(settings: Mapping[str, Any], choices: LessonChoices) -> dict[str, str]:
    """Return the adjustable settings as text: `epsilon`, `limit` (MC and TD's policy hits below it), the rules."""
    rules = {key: str(settings[key]) for key in RULES}
    return {"epsilon": str(choices.epsilon), "limit": choices.policy.removeprefix(_POLICY), **rules}


def adjusted(settings: Mapping[str, Any], choices: LessonChoices, texts: Mapping[str, str]) -> AdjustedSettings:
    """Parse texts with the keys of `typed`. Raises SettingsError that names the key."""
    epsilon, limit = _number("epsilon", texts["epsilon"]), _number("limit", texts["limit"], int)
    check_range("epsilon", epsilon, 0, 1)
    check_range("limit", limit, *_LIMITS)
    wanted = {**settings, **{key: texts[key] for key in RULES}, "discount": _number("discount", texts["discount"])}
    if texts["decks"].isdecimal():
        wanted["decks"] = int(texts["decks"])
    load_configured_game(wanted)  # raises for invalid settings
    return AdjustedSettings(wanted, replace(choices, epsilon=epsilon, policy=f"{_POLICY}{limit}"))


def _number(key: str, text: str, kind: type[float] = float) -> float:
    try:
        return kind(text.strip().replace(",", "."))
    except ValueError:
        raise SettingsError(key, f"expected a number, not {text.strip() or 'nothing'}") from None


class Lessons:
    """Learners for all `METHODS` of one game, with the same seed; the first to start computes the exact process."""

    def __init__(self, settings: dict[str, Any], seed: int, choices: LessonChoices) -> None:
        self.settings, self.seed, self.choices = settings, seed, choices
        self._game: Game = load_configured_game(settings)
        self._lock, self._turn = threading.Lock(), threading.Lock()
        self._subject: Subject | None = None
        self._learners = {name: self._learner(name) for name in METHODS}

    def __getitem__(self, name: str) -> BackgroundLearner:
        """Return the learner of a method."""
        return self._learners[name]

    def toggle(self, name: str) -> None:
        """Start or pause a method."""
        learner = self._learners[name]
        learner.pause() if learner.running else learner.start()

    def reset(self, name: str) -> None:
        """Replace a method's table by an empty one; a running learner continues."""
        old = self._learners[name]
        running = old.running
        old.close()
        self._learners[name] = self._learner(name)
        if running:
            self._learners[name].start()

    def choose(self, choices: LessonChoices) -> None:
        """Apply new choices; a table is kept unless its target values change, as MC's and TD's do with the policy."""
        old, self.choices = self.choices, choices
        if choices.epsilon != old.epsilon:
            if (process := self["ql"].process) is None:
                self.reset("ql")  # it may be about to start with the old epsilon
            else:
                process.settings = replace(process.settings, epsilon=choices.epsilon)
        if choices.policy != old.policy:
            self.reset("mc")
            self.reset("td")

    def next_speed(self) -> None:
        """Switch all methods to the next of `SPEEDS`."""
        number = SPEEDS.index(self.choices.speed)
        self.choices = replace(self.choices, speed=SPEEDS[(number + 1) % len(SPEEDS)])

    def advice(self, name: str, state: States) -> tuple[int, int] | None:
        """Return the table's action in the state `[1]`, and its number of visits; None before it has started."""
        learned = self._learners[name].learned
        if learned is None or self._subject is None:
            return None
        number = int(self._subject.model.index(state[0]))
        return int(learned.policy[number]), int(learned.visits[number])

    def close(self) -> None:
        """End all threads, without waiting for them."""
        for learner in self._learners.values():
            learner.close()

    def _learner(self, name: str) -> BackgroundLearner:
        return BackgroundLearner(lambda: self._process(name), lambda: self.choices.speed, self._turn)

    def settings_of(self, name: str) -> TabularSettings:
        """Return the settings of a new table of a method."""
        values = {
            "game": self.settings,
            "algo": METHODS[name],
            "seed": self.seed,
            "policy": None if name == "ql" else self.choices.policy,
            "epsilon": self.choices.epsilon,
            "min_visits": MIN_VISITS,
        }
        return settings_from_dict(TabularSettings, values)

    def _process(self, name: str) -> LearningProcess:
        """Build a new table of a method, in the learner's thread."""
        settings = self.settings_of(name)
        with self._lock:  # computed once, by the first learner
            if self._subject is None:
                self._subject = Subject(self._game, settings.reward_name(self._game))
        return LearningProcess(self._subject, settings)


class LearningTable(Sitting):
    """Table beside learners, one of which shows its value table and may play, the same on the screen and on the page.

    `start_lessons` must be called first.
    """

    lessons: Lessons
    method, quantity = "ql", QUANTITIES[0]  # of the shown value table
    autoplay = False

    def look(self) -> None:
        """Show the learners' progress."""
        raise NotImplementedError

    def changed(self) -> None:
        """Show what another method, quantity or speed changes."""
        self.look()

    def start_lessons(self, choices: LessonChoices) -> None:
        """Begin with empty value tables."""
        self.lessons = Lessons(self.session.settings, self.table.setup.seed, choices)

    def check_lessons(self) -> None:
        """Raise what a learner has raised: a bug, which is reported as any other."""
        for name in METHODS:
            if (failure := self.lessons[name].failure) is not None:
                raise failure

    @property
    def here(self) -> tuple[str, int, int] | None:
        """The block, the row and the column of the current decision."""
        state = self.table.hand.state[0]
        if self.table.hand.over:
            return None
        return place_of(int(state["sum"]), bool(state["soft"]), int(state["open_rank"]))

    def play_itself(self) -> None:
        """Play AutoPlay's next move, or deal the next game."""
        if not self.autoplay or not self.is_quiet:
            return
        if self.table.hand.over:
            self.action_next()
        elif self.may_act:
            state = self.table.hand.state
            action, line = autoplayed(self.language, self.lessons, self.method, state, self.speech.action)
            if action is not None:
                self.tell([line])
                self.choose(action)
                return
            self.autoplay = False
            self.complain(line)
            self.look()

    def action_learn(self, name: str) -> None:
        """Start or pause a method, and show its table."""
        if name in METHODS:
            self.lessons.toggle(name)
            self.method = name if self.lessons[name].running else self.method
            self.changed()

    def action_next_method(self) -> None:
        """Show the table of the next method."""
        self.method = after(self.method, list(METHODS))
        self.changed()

    def action_next_quantity(self) -> None:
        """Show the next quantity."""
        self.quantity = after(self.quantity, QUANTITIES)
        self.changed()

    def action_next_speed(self) -> None:
        """Let all methods learn at the next speed."""
        self.lessons.next_speed()
        self.changed()

    def action_reset(self) -> None:
        """Empty the shown table."""
        self.lessons.reset(self.method)
        self.tell([self.language.say("blackjack_screen.was_reset", method=self.method.upper())])
        self.look()

    def action_autoplay(self) -> None:
        """Let the shown table play, or stop it."""
        self.autoplay = not self.autoplay
        key = "blackjack_screen.auto_on" if self.autoplay else "blackjack_screen.auto_off"
        self.tell([self.language.say(key, method=self.method.upper())])
        self.look()

    def adjust(self, wanted: AdjustedSettings) -> None:
        """Learn by other choices; other rules begin a table of their own."""
        if wanted.settings != self.session.settings:
            opened = partial(self.session.under, wanted.settings)
            self.think("app.opening", opened, lambda session: self._change_rules(session, wanted.choices))
            return
        self.lessons.choose(wanted.choices)
        self.tell([self.language.say("blackjack_screen.adjusted")])
        self.look()

    def _change_rules(self, session: Session, choices: LessonChoices) -> None:
        """Start a table with other rules, which discards what was learned and counted."""
        try:
            saved = self.saved_words()
        except OSError as error:
            self.warn(self.speech.not_saved(error))
            return
        self.lessons.close()
        self.session, self.table = session, session.table
        self.speech = Speech(self.language, session.table, session.coach)
        self.start_lessons(choices)
        self.tell([self.language.say("blackjack_screen.new_rules"), *([saved] if saved else [])])
        self.go_on()


def mark(learner: BackgroundLearner) -> str:
    """Return a sign for running, paused or, while the rules are being compiled, preparing."""
    if not learner.running:
        return PAUSED
    return PREPARES if learner.learned is None else RUNS


def stats(language: Language, lessons: Lessons) -> str:
    """Return a header and a line for each method, 40 columns wide."""
    lines = ["".join(f"{language.say(f'blackjack_screen.{name}'):>{width}}" for name, width in _COLUMNS.items())]
    for name in METHODS:
        learner = lessons[name]
        line = f"{name.upper()} {mark(learner)}"
        if learner.learned is not None:
            errors = learner.learned.errors
            rate = figure(learner.per_second) if learner.running else "–"
            line += (
                f"{figure(learner.learned.episodes):>6}{rate:>6}{_small(errors.mean):>6}{_small(errors.greatest):>6}"
            )
            line += f"{_share(errors.optimal_share):>6}{_small(errors.loss, 5):>7}"
        lines.append(line)
    return "\n".join(lines)


def legend(language: Language, policy: str) -> str:
    """Return the meaning of the signs and the columns."""
    keys = ("marks", "errors", "right", "policy")
    return "\n".join(language.say(f"blackjack_screen.legend_{key}", policy=policy) for key in keys)


def speed_text(language: Language, speed: int) -> str:
    """Return the speed of learning, in games a second."""
    if speed == FULL:
        return language.say("blackjack_screen.full")
    return f"{speed // 1000}k/s" if speed >= 1000 else f"{speed}/s"


def autoplayed(
    language: Language, lessons: Lessons, method: str, state: States, named: Callable[[int], str]
) -> tuple[int | None, str]:
    """Return the action that a method's table plays, None if it has learned nothing, and a line about it."""
    found, shown = lessons.advice(method, state), method.upper()
    if found is None:
        return None, language.say("blackjack_screen.auto_nothing", method=shown)
    action, visits = found
    key = "blackjack_screen.auto_plays" if visits else "blackjack_screen.auto_blind"
    return action, language.say(key, method=shown, action=named(action), visits=f"{visits:,}")


def after(each: str, names: Sequence[str]) -> str:
    """Return the name that follows, the first after the last."""
    return names[(names.index(each) + 1) % len(names)]


def figure(number: float) -> str:
    """Format a count in at most five characters: 9500, 12.3k, 400k, 3.14M."""
    if number < 10_000:
        return f"{number:.0f}"
    unit, size = next((u, s) for u, s in (("k", 1e3), ("M", 1e6), ("G", 1e9), ("T", 1e12)) if number < 999.5 * s)
    scaled = number / size
    return f"{scaled:.{2 if scaled < 9.995 else 1 if scaled < 99.95 else 0}f}{unit}"


def _small(number: float, places: int = 4) -> str:
    """Format a distance without the zero before its point, and without a sign that only rounding causes."""
    if math.isnan(number):
        return "–"
    text = f"{abs(number) if abs(number) < 1e-9 else number:.{places}f}"
    return text[1:] if text.startswith("0.") else text[: places + 1]


def _share(share: float) -> str:
    """Format a share as a percentage, rounded down so that only a full share is 100%."""
    return "–" if math.isnan(share) else f"{math.floor(100 * share + 1e-9)}%"
