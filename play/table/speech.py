"""Text of the table in its language, the same in the line mode and on the screens."""

from collections.abc import Sequence

from busso.evaluate.review.advisers import ActionValue, Evaluation
from busso.play.language import Language, Message
from busso.play.table.hints import Coach, Odds
from busso.play.table.seats import HUMAN
from busso.play.table.table import ShownTable


class Speech:
    """Formatter of events at a table and of its coach's results."""

    def __init__(self, language: Language, table: ShownTable, coach: Coach) -> None:
        self.language, self.table, self.coach = language, table, coach
        self._name = table.game.shown_as

    def action(self, action: int) -> str:
        """Return the name of an action."""
        return self.language.action(self._name, self.table.game.action_text(action))

    def seat_name(self, seat: int, viewer: int) -> str:
        """Return the name of a seat's player; a person is called differently as the `viewer`."""
        name = self.table.setup.seats[seat]
        return self.language.say("app.you" if seat == viewer else "app.person") if name == HUMAN else name

    def line(self, told: Message) -> str:
        """Return a message as text, with a translated action."""
        if "action" not in told.values:
            return self.language.render(told)
        named = self.language.action(self._name, str(told.values["action"]))
        return self.language.say(told.key, **{**told.values, "action": named})

    def lines(self, told: Sequence[Message]) -> list[str]:
        """Return messages as text, one per line."""
        return [self.line(each) for each in told]

    def not_saved(self, error: OSError) -> str:
        """Return the message that a file cannot be written, and why."""
        return self.language.say("plain.not_saved", file=error.filename or "", why=error.strerror or error)

    def value_unit(self) -> str:
        """Return the unit of the coach's values; empty without any."""
        adviser = self.coach.adviser
        return "" if adviser is None else self.language.unit(adviser.unit)

    def value(self, value: float | None) -> str:
        """Format a value of the coach; `?` if unknown."""
        adviser = self.coach.adviser
        return value_text(value, "" if adviser is None else adviser.unit)

    def worth(self, worth: ActionValue) -> str:
        """Return an action with its value."""
        return f"{self.action(worth.action)} {self.value(worth.value)}"

    def hint(self, worths: Sequence[ActionValue]) -> str:
        """Return the value of each action, on one line."""
        if not worths:
            return self.language.say("plain.no_hint")
        told = tuple(map(self.worth, worths))
        return self.language.say("plain.hint", unit=self.value_unit(), player=self.coach.name, worths=told)

    def odds(self, found: Sequence[Odds]) -> list[str]:
        """Return the chances to win, a line for each action."""
        return [self._odds(odds) for odds in found] or [self.language.say("plain.no_odds")]

    def _odds(self, odds: Odds) -> str:
        say = self.language.say
        chances = tuple(say(f"odds.{name}", chance=f"{100 * chance:.1f}%") for name, chance in odds.chances.items())
        if odds.action is None:
            return say("plain.odds", chances=chances)
        return say("plain.odds_of", action=self.action(odds.action), chances=chances)

    def judged(self, judged: Evaluation) -> str:
        """Return a reviewed decision as text."""
        place = {"number": judged.number, "seat": judged.seat, "action": self.action(judged.action)}
        if judged.cost is None:
            return self.language.say("plain.judged_unknown", **place, best=self.worth(judged.best))
        if judged.cost == 0:
            return self.language.say("plain.judged_best", **place)
        best = self.worth(judged.best)
        return self.language.say("plain.judged", **place, cost=f"{judged.cost:.2f}", best=best)

    def mistake(self, judged: Evaluation) -> str:
        """Say what a decision cost, and the best action: the coach's remark on a mistake."""
        return self.language.say(
            "sette_screen.mistake",
            action=self.action(judged.action),
            cost=f"{judged.cost:.3f}",
            value=self.value(judged.played),
            best=self.action(judged.best.action),
            best_value=self.value(judged.best.value),
        )

    def review_total(self, judged: list[Evaluation]) -> str:
        """Return the total cost of the decisions of a review."""
        if self.coach.adviser is None or not judged:
            return self.language.say("plain.no_review")
        cost = f"{sum(each.cost or 0.0 for each in judged):.2f}"
        return self.language.say("plain.review_total", number=len(judged), cost=cost, unit=self.value_unit())

    def score(self) -> list[str]:
        """Return the score of the match and, after a game, the number of games won."""
        table, score, say = self.table, self.table.score, self.language.say
        found = []
        if table.match_score is not None:
            found.append(say("plain.match_score", score=tuple(table.match_score), to=table.setup.match))
        if table.game_over:
            alone, each = len(score.wins) == 1, len(score.wins) == table.game.seats
            key = "plain.score_alone" if alone else "plain.score_by_seat" if each else "plain.score"
            found.append(say(key, games=score.games, wins=tuple(score.wins), ties=score.ties))
            totals = tuple(f"{total:g}" for total in score.totals)
            found.append(say("plain.totals", totals=totals, unit=self.language.unit(table.game.unit)))
        return found


def value_text(value: float | None, unit: str) -> str:
    """Format a value with the precision of its unit; `?` if unknown."""
    if value is None:
        return "?"
    return f"{value:.2f}" if unit == "points" else f"{value:+.3f}"


def one_line(error: BaseException) -> str:
    """Describe an error on one line."""
    if isinstance(error, OSError):
        return f"{error.filename or ''}: {error.strerror or error}"
    return str(error) or type(error).__name__
