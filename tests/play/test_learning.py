"""Learning shown at the table: the same tables as `busso train`, however the steps are split."""

import numpy as np
import pytest

from busso.blackjack.model import sums_to_decide
from busso.cards.compiled.splitmix import stream
from busso.command.settings.checks import SettingsError
from busso.command.settings.compose import settings_from_dict
from busso.command.settings.game import load_configured_game
from busso.play.blackjack_lab.learning import FULL, METHODS, BackgroundLearner, LearningProcess, Subject
from busso.play.blackjack_lab.lessons import LessonChoices, Lessons, adjusted, typed
from busso.play.blackjack_lab.value_table import COLUMNS, QUANTITIES, block, place_of, short, summed
from busso.train.settings.tabular import TabularSettings
from busso.train.tabular.algorithms import Method, learn, of_game
from tests.composed import game_defaults
from tests.errors import error_about
from tests.limits import until

RULES = game_defaults("blackjack")
EVALUATED = "hit_below_14"


@pytest.fixture(scope="module")
def subject() -> Subject:
    return Subject(load_configured_game(RULES), "value")


@pytest.fixture
def lessons() -> "Lessons":
    found = Lessons(RULES, 1, LessonChoices(speed=FULL))
    yield found
    found.close()
    for thread in (found[name]._thread for name in METHODS):
        if thread is not None:
            thread.join()


def process(subject: Subject, name: str) -> LearningProcess:
    values = {"game": RULES, "algo": METHODS[name], "policy": None if name == "ql" else EVALUATED, "min_visits": 100}
    return LearningProcess(subject, settings_from_dict(TabularSettings, values))


@pytest.mark.parametrize("name", METHODS)
def test_a_table_is_that_of_train_however_it_is_cut(subject: Subject, name: str) -> None:
    cut = process(subject, name)
    settings = cut.settings
    for episodes in (1, 4_000, 0, 17, 5_982):
        cut.step(episodes)
    policy = subject.model.policies.get(settings.policy, subject.optimal.policy)
    values, visits = np.zeros_like(cut.values), np.zeros_like(cut.visits)
    method = Method(0.95, settings.epsilon, 0.0, 1.0, policy)
    simulator = of_game(subject.game, "value", subject.model.index)
    decisions = learn(METHODS[name], simulator, stream(1, "episodes", 0, 10_000), values, visits, method)
    assert np.array_equal(cut.values, values) and np.array_equal(cut.visits, visits)
    assert (cut.episodes, cut.decisions) == (10_000, decisions) and np.abs(values).max() > 0.5


def test_two_at_once_start_pause_and_go_on_where_they_were(lessons: Lessons, subject: Subject) -> None:
    for name in ("mc", "ql"):
        lessons.toggle(name)
    for name in ("mc", "ql"):
        until(name, lambda name=name: lessons[name].learned is not None, 60)
    lessons.toggle("mc")
    _settled(lessons["mc"])
    paused = lessons["mc"].learned
    before = lessons["ql"].learned.episodes
    until("ql goes on", lambda: lessons["ql"].learned.episodes > before, 20)
    assert lessons["mc"].learned is paused and lessons["td"].learned is None
    lessons.toggle("mc")
    until("mc goes on", lambda: lessons["mc"].learned.episodes > paused.episodes, 20)
    for name in ("mc", "ql"):
        lessons[name].pause()
        _settled(lessons[name])
        found = lessons[name].learned
        whole = process(subject, name)
        whole.step(found.episodes)
        assert np.array_equal(found.values, whole.look().values)
        assert np.array_equal(found.visits, whole.visits.sum(axis=1))


def _settled(learner: BackgroundLearner) -> None:
    """Wait until a paused learner has shown its last step."""
    with learner._turn:
        last = learner.process
    until("the last progress", lambda: learner.learned.episodes == last.episodes, 20)


def test_another_epsilon_goes_on_and_another_policy_begins_anew(lessons: Lessons) -> None:
    for name in ("td", "ql"):
        lessons.toggle(name)
        until(name, lambda name=name: lessons[name].learned is not None, 60)
    learned, old = lessons["ql"].learned.episodes, lessons["td"]
    lessons.choose(LessonChoices(0.1, EVALUATED, FULL))
    assert lessons["ql"].process.settings.epsilon == 0.1 and lessons["td"] is old
    until("more", lambda: lessons["ql"].learned.episodes > learned, 20)
    lessons.choose(LessonChoices(0.1, "hit_below_17", FULL))
    assert lessons["td"] is not old and lessons["td"].running and not lessons["mc"].running
    until("td", lambda: lessons["td"].learned is not None, 20)
    assert lessons["td"].process.settings.policy == "hit_below_17" and lessons["ql"].learned.episodes > learned
    lessons.reset("ql")
    assert lessons["ql"].learned is None and lessons["ql"].running


def test_cells_hold_the_values_of_their_states(subject: Subject) -> None:
    learned = process(subject, "ql")
    learned.step(50_000)
    progress = learned.look()
    cells = summed(progress)
    for cards, dealer, place in ((("10", "6"), "9", ("hard", 4, 8)), (("A", "7"), "K", ("soft", 2, 9))):
        state = subject.model.locate(cards, dealer)
        name, row, column = place
        assert place_of(sums_to_decide(name)[row], name == "soft", subject.model.parse_card(dealer)) == place
        text = {quantity: block(cells, name, quantity, ("S", "H")).cells[row][column].text for quantity in QUANTITIES}
        assert int(text["value"]) == round(100 * progress.values[state])
        assert text["visits"].strip() == short(int(progress.visits[state]))
        assert int(text["error"]) == np.clip(round(1000 * (progress.values - progress.exact)[state]), -99, 99)
        assert text["best"] == f" {'SH'[progress.policy[state]]}{' ' if progress.right[state] else '!'}"
    assert len(block(cells, "hard", "value", ("S", "H")).cells) == 17 and len(COLUMNS) == 10
    assert cells["visits"].sum() == progress.decisions == progress.visits.sum()


def test_what_is_typed_becomes_rules_or_one_line() -> None:
    choices = LessonChoices()
    texts = typed(RULES, choices)
    assert adjusted(RULES, choices, texts) == (RULES, choices)
    wanted = adjusted(RULES, choices, texts | {"epsilon": "0,2", "limit": "17", "decks": "2", "ties": "push"})
    assert wanted == (RULES | {"decks": 2, "ties": "push"}, LessonChoices(0.2, "hit_below_17"))
    wrong = "epsilon=2 epsilon= discount=x limit=3 limit=1.5 game.discount=1.5 game.decks=9"
    for key, _, text in (each.partition("=") for each in wrong.split(" ")):
        with error_about(SettingsError, key):
            adjusted(RULES, choices, texts | {key.removeprefix("game."): text})
