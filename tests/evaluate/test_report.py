"""`busso report`: its pages, games watched for them, calibration, and groups of runs."""

import csv
import json
import re
import shutil
from html.parser import HTMLParser
from pathlib import Path

import matplotlib.figure
import numpy as np
import pytest
import torch
from matplotlib.axes import Axes

from busso.cards.compiled.splitmix import stream
from busso.cards.game import Game, load_game
from busso.cards.play import play
from busso.cards.players import named_player
from busso.command.settings.checks import SettingsError
from busso.evaluate.report import drawing
from busso.evaluate.report.__main__ import main as report
from busso.evaluate.report.calibration import explained, reliability
from busso.evaluate.report.drawing import Line, Panel, draw_panels
from busso.evaluate.report.games import tressette as tressette_play
from busso.evaluate.report.games.tressette import solve_endgame
from busso.evaluate.report.observing import Agent, ObservedGames, watch_games
from busso.evaluate.report.page import Figure, Report, Section, Text, TextTable, to_html, write
from busso.evaluate.report.runs import band, by_minutes, same_but_for_the_seed, seeds_beside
from busso.evaluate.report.training import facts
from busso.train.__main__ import main as train
from busso.train.network.build import build_network
from busso.train.network.q_network import NetworkPlayer
from busso.train.run.read import Run, load_run
from tests.contrast import LEAST, contrast, of_hex
from tests.errors import error_about, key_of
from tests.evaluate.pages import sections, text_of_page
from tests.train.runs import settings, small

ROOT = Path(__file__).parents[2]
GRADES = ("best", "fine", "mistake", "blunder")
QUICK = ("games=24", "tricks=2", "measure=false")


def test_a_report_of_a_run(runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert report([str(runs / "one"), f"folder={tmp_path}", "games=24", "tricks=2"]) == 0
    assert capsys.readouterr().out == f"{tmp_path / 'report.html'}\n"
    assert sections(tmp_path) == [
        "Results",
        "Curves",
        "How it plays",
        "Values against outcomes",
        "The last 2 tricks, solved",
        "Settings",
        "Throughput",
        "Program and machine",
    ]
    text = text_of_page(tmp_path)
    results = json.loads((runs / "one" / "results.json").read_text())
    assert f"{results['random']['win_rate'][0]:.1%}" in text and "`two` (seed 2)" in text
    assert "| `network.hidden` | [16,16] |" in text and "imited by the " in text and "torch 2" in text
    page = (tmp_path / "report.html").read_text()
    assert all(f'<h2 id="{each}"' in page for each in ("results", "curves", "settings"))


def test_seeds_beside_it_are_found(runs: Path) -> None:
    assert [other.name for other in seeds_beside(load_run(runs / "one"))] == ["two"]
    assert seeds_beside(load_run(runs / "wide")) == []


def test_runs_that_are_no_seeds_of_one_are_refused(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert not same_but_for_the_seed(load_run(runs / "one"), load_run(runs / "wide"))
    assert report([str(runs / "one"), str(runs / "wide")]) == 2
    error = capsys.readouterr().err
    assert "differs from" in error and "busso compare" in error and error.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "key"),
    [
        ([], "run"),
        (["runs/nowhere"], "run"),
        (["."], "run"),
        (["runs/x", "games=1"], "games"),
        (["runs/x", "tricks=9"], "tricks"),
        (["runs/x", "run=y"], "run"),
    ],
)
def test_what_cannot_be_reported_is_one_line(
    arguments: list[str], key: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert report(arguments) == 2
    error = capsys.readouterr().err
    assert key_of(error) == key


def test_a_run_that_has_just_begun(runs: Path, tmp_path: Path) -> None:
    """Without checkpoint, results or curves, the page says so. Other seeds may be left out."""
    (tmp_path / "new").mkdir()
    shutil.copy(runs / "one" / "config.yaml", tmp_path / "new")
    shutil.copytree(runs / "two", tmp_path / "two")
    assert [other.name for other in seeds_beside(load_run(tmp_path / "new"))] == ["two"]
    assert report([f"run={tmp_path / 'new'}", "seeds=false", *QUICK]) == 0
    text = text_of_page(tmp_path / "new" / "report")
    assert "No games were played" in text and "not finished" in text and "`two`" not in text


@pytest.mark.parametrize(
    ("game", "more", "expected"),
    [
        ("spike", ("episodes=64",), "round 1, betting"),
        ("blackjack", (), "Beside the exact solution"),
    ],
)
def test_the_other_games(game: str, more: tuple[str, ...], expected: str, tmp_path: Path) -> None:
    assert train(small(tmp_path, f"game={game}", "learner.learning_starts=100", *more)) == 0
    assert report([str(tmp_path / game / "small"), *QUICK]) == 0
    text = text_of_page(tmp_path / game / "small" / "report")
    assert expected in text and "Values against outcomes" in text


def test_a_table(tmp_path: Path) -> None:
    arguments = ["game=sette_mezzo", "algo=q_learning", "episodes=20000", "log_every_episodes=10000"]
    assert train([*arguments, f"runs={tmp_path}", "name=table"]) == 0
    assert report([str(tmp_path / "sette_mezzo" / "table"), *QUICK]) == 0
    text = text_of_page(tmp_path / "sette_mezzo" / "table" / "report")
    assert "greatest error" in text and "Values against outcomes" not in text


def test_a_seed_counts_once(runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("one", "two"):
        shutil.copytree(runs / name, tmp_path / name)
    shutil.copytree(runs / "two", tmp_path / "two_again")
    assert [other.name for other in seeds_beside(load_run(tmp_path / "one"))] == ["two"]
    assert report([str(tmp_path / name) for name in ("one", "two", "two_again")]) == 2
    assert "two_again" in (line := capsys.readouterr().err) and key_of(line) == "run"


def made_up(folder: Path, rows: list[tuple[float, float, float]], of: Run) -> Run:
    """Write a run with rows of decisions, decisions a second, and loss."""
    folder.mkdir()
    with (folder / "metrics.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["env_steps", "time/env_steps_per_second", "train/loss"])
        writer.writerows(rows)
    return Run(folder, of.settings)


def test_bands_and_time_by_hand(runs: Path, tmp_path: Path) -> None:
    like = load_run(runs / "one")
    one = made_up(tmp_path / "a", [(100, 10, 4.0), (300, 20, 2.0)], like)
    other = made_up(tmp_path / "b", [(100, 10, 6.0), (200, 10, 5.0)], like)
    assert one.seconds_at(np.array([50.0, 100, 200, 300])).tolist() == [5, 10, 15, 20]
    line = band([one, other], "train/loss")
    assert line is not None and line.low is not None and line.high is not None
    assert line.x.tolist() == [100, 200] and line.y.tolist() == [5, 4]
    assert line.low.tolist() == [4, 3] and line.high.tolist() == [6, 5]
    timed = band([one], "train/loss", by_minutes)
    assert timed is not None and timed.x * 60 == pytest.approx([10, 20]) and timed.low is None
    assert one.seconds_at(np.array([400.0])).tolist() == [25]  # at the speed of the newest row
    assert band([one], "eval/win_rate_vs_random") is None


def drawn(panels: list[Panel], monkeypatch: pytest.MonkeyPatch) -> list[Axes]:
    """Return the axes of panels as they are laid out."""
    figures: list[matplotlib.figure.Figure] = []
    with monkeypatch.context() as patched:
        patched.setattr(drawing, "to_svg", lambda figure, _: figures.append(figure) or "")
        draw_panels("panels", panels, "decisions")
    figures[0].draw_without_rendering()
    return figures[0].axes


def test_shares_have_marks_a_band_and_a_line_at_half(monkeypatch: pytest.MonkeyPatch) -> None:
    x, many = np.arange(5.0), np.arange(300.0)
    near, far = Line(x, x / 10 + 0.3, x / 10 + 0.2, x / 10 + 0.4), Line(many, many / 3000 + 0.85)
    left, right = drawn(
        [Panel("a", {"a": near}, "", "percent", 0.5), Panel("b", {"a": far}, "", "percent", 0.5)], monkeypatch
    )
    curve, half = left.lines
    assert curve.get_marker() == "o" and curve.get_xdata().tolist() == x.tolist() and half.get_ydata() == [0.5, 0.5]
    assert len(left.collections) == 1 and len(right.lines) == 1 and right.lines[0].get_marker() == "None"
    labels = [label.get_text() for label in right.get_yticklabels()]
    assert len(set(labels)) == len(labels) and all(re.fullmatch(r"\d+(\.\d+)?%", label) for label in labels)


@pytest.mark.parametrize("panels", [1, 2, 3, 5])
def test_panels_leave_no_empty_quarter(panels: int, monkeypatch: pytest.MonkeyPatch) -> None:
    line = Line(np.arange(3.0), np.arange(3.0))
    boxes = [axis.get_position() for axis in drawn([Panel("", {"": line}, "")] * panels, monkeypatch)]
    assert max(box.x1 for box in boxes) > 0.95 and boxes[-1].x1 > 0.95
    assert boxes[-1].x0 < 0.2 or panels % 2 == 0


def test_the_speed_of_the_run_is_not_contradicted(runs: Path, tmp_path: Path) -> None:
    """Its own decisions a second are told once; the measurement of now has shares of the time only."""
    run = load_run(runs / "one")
    assert report([str(run.folder), "seeds=false", f"folder={tmp_path}", "games=24", "tricks=1"]) == 0
    text = text_of_page(tmp_path).partition("## Throughput")[2].partition("\n## ")[0]
    rate = facts(run, 1)["decisions a second"]
    assert f"{run.counters['env_steps']:,} decisions in" in text and f", {rate} a second" in text
    assert "| stage | share of the time |" in text and "Limited by the" in text
    assert "decisions/s" not in text and text.count("decisions a second") == 1


_VOID = ("meta", "br", "path", "use", "rect")


def curves(name: str) -> str:
    x = np.arange(5.0)
    return draw_panels(
        name, [Panel("won", {"a": Line(x, x, x - 1, x + 1), "b": Line(x, 2 * x)}, "points")], "decisions"
    )


@pytest.fixture(scope="module")
def example() -> Report:
    return Report(
        "runs <of> & game",
        "A lead with `code`.",
        {"decisions": "1,000"},
        [
            Section("First", [Text("Some *words* and <script>alert(1)</script>."), Figure(curves("one"), "one")]),
            Section("Second", [TextTable(("name", "a|b"), [("`x<y`", "1|2")], "A caption.", marked=(0,))]),
            Section("Third", [Figure(curves("two"), "two"), Figure(curves("h"), "h")]),
        ],
    )


class Parsed(HTMLParser):
    """Parser that collects open tags."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.open += [tag] if tag not in _VOID else []

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Ignore a tag that ends itself."""

    def handle_endtag(self, tag: str) -> None:
        assert tag in _VOID or self.open.pop() == tag


def test_the_page_is_whole(example: Report) -> None:
    text, page = to_html(example), Parsed()
    page.feed(text)
    assert not page.open
    ids, targets = re.findall(r'\bid="([^"]*)"', text), re.findall(r'href="#([^"]*)"', text)
    assert len(ids) == len(set(ids)), "ids of the drawings are apart"
    assert targets and set(targets) <= set(ids)
    assert "url(http" not in text and "@import" not in text
    assert "prefers-color-scheme: dark" in text and "@media print" in text


def test_the_page_says_all_and_escapes_it(example: Report, tmp_path: Path) -> None:
    page = write(example, tmp_path / "new" / "folder")
    assert page.name == "report.html" and page.read_text() == to_html(example)
    assert [each.name for each in (tmp_path / "new").rglob("*")] == ["folder", "report.html"]
    text = text_of_page(page.parent)
    assert "# runs <of> & game" in text and "| `x<y` | 1|2 |" in text and "| decisions | 1,000 |" in text
    assert "A caption." in text and "<script>alert(1)</script>" in text and "<script" not in page.read_text()


def test_a_folder_that_cannot_be_written_is_named(example: Report, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with error_about(SettingsError, "folder", hint="another"):
        write(example, tmp_path / "file" / "below")


def agent_of(
    game: Game, tmp_path_factory: pytest.TempPathFactory, discounts: tuple[float, float] = (1.0, 1.0)
) -> Agent:
    torch.manual_seed(1)
    network = build_network(game, settings(tmp_path_factory.mktemp("runs"), f"game={game.name}"))
    player = NetworkPlayer(network)
    return Agent(game, player, player, next(iter(game.rewards)), discounts)


@pytest.fixture(scope="module")
def agent(tmp_path_factory: pytest.TempPathFactory) -> Agent:
    return agent_of(load_game("tressette"), tmp_path_factory)


@pytest.fixture(scope="module")
def watched(agent: Agent) -> ObservedGames:
    return watch_games(agent, 40, seed=5)


def test_the_games_are_those_that_the_player_plays(agent: Agent, watched: ObservedGames) -> None:
    seats = np.zeros((40, 4), np.uint8)
    states, _ = play(agent.game, stream(5, "report", 0, 40), [agent.player], seats)
    assert np.array_equal(agent.game.returns(states), watched.results)
    order = watched.action.reshape(40, 40).T  # each round is one card in each game
    assert np.array_equal(states["order"], order)


def test_outcomes_are_what_the_seat_earns_by_the_end(watched: ObservedGames) -> None:
    """The reward comes with the last card: the difference of points over 11."""
    own = watched.results[watched.game, watched.seat]
    assert watched.outcome == pytest.approx((2 * own - 11) / 11, abs=1e-6)
    assert np.isnan(watched.values[~watched.legal]).all()
    # Values are computed in other batches than the actions, so they differ by rounding.
    assert watched.chosen == pytest.approx(np.nanmax(watched.values, axis=1).astype(np.float64), abs=0.01)


@pytest.mark.parametrize("discounts", [(0.5, 0.5), (1.0, 0.5)])
def test_outcomes_are_discounted_and_sum_what_comes_on_the_way(
    tmp_path_factory: pytest.TempPathFactory, discounts: tuple[float, float]
) -> None:
    """Corellian Spike pays after each hand: compared with the credits at the start of each hand."""
    spike = agent_of(load_game("spike", {"hands": 3}), tmp_path_factory, discounts)
    found = watch_games(spike, 6, seed=2)
    for game, seat in sorted({*zip(found.game.tolist(), found.seat.tolist(), strict=True)}):
        rows = np.flatnonzero((found.game == game) & (found.seat == seat))
        start = [float(found.states["stakes"][row, seat]) for row in rows]  # credits at the start of the hand
        following = [*start[1:], 50 + float(found.results[game, seat])]
        expected = 0.0
        for own, then, row in zip(start[::-1], following[::-1], rows[::-1], strict=True):
            expected = (then - own) / 50 + discounts[then != own] * expected
            assert found.outcome[row] == pytest.approx(expected, abs=1e-5)
    assert len(np.unique(found.states["hands_played"])) == 3


def test_an_opponent_sits_where_the_agent_does_not(agent: Agent) -> None:
    against = Agent(
        agent.game, agent.player, agent.network, "points", (1.0, 1.0), named_player(agent.game, "greedy"), "greedy"
    )
    found = watch_games(against, 8, seed=3)
    teams = {(int(game) % 2, int(seat) % 2) for game, seat in zip(found.game, found.seat, strict=True)}
    assert len(found.action) == 8 * 20 and teams in ({(0, 0), (1, 1)}, {(0, 1), (1, 0)})


def test_the_highest_card_left_takes_the_trick(watched: ObservedGames) -> None:
    """A seat that leads the highest card left of its suit takes the trick and leads again."""
    leads = np.flatnonzero(watched.states["plays"] % 4 == 0)
    highest = tressette_play._is_highest(watched, leads)
    plays = watched.states["plays"][leads]
    for row, sure in zip(leads[plays < 36], highest[plays < 36], strict=True):
        game, number = watched.game[row], int(watched.states["plays"][row])
        (following,) = leads[(watched.game[leads] == game) & (plays == number + 4)]
        assert watched.seat[following] == watched.seat[row] or not sure
    assert 0 < highest.mean() < 1


def test_who_sees_all_hands_loses_nothing_in_the_endgame(agent: Agent) -> None:
    """The player that solves the last tricks plays a best card in each; a random card is not always best."""
    cheating = Agent(agent.game, named_player(agent.game, "cheating:tricks:3"), None, "points", (1.0, 1.0))
    found = solve_endgame(watch_games(cheating, 60, seed=6), tricks=3, seed=1)
    assert found.tricks_left.size > 30 and found.tricks_left.max() <= 3
    assert (found.regret["the agent"] == 0).all() and (found.right["the agent"] == 1).all()
    assert found.regret["a card at random"].mean() > found.regret["greedy"].mean() > 0
    assert found.per_hand("the agent").mean == 0 < found.per_hand("greedy").mean
    assert (found.right["a card at random"] < 1).all()


def test_true_values_lie_on_the_diagonal_within_their_intervals() -> None:
    random = np.random.default_rng(3)
    value = random.uniform(-1, 1, 20_000)
    outcome = np.where(random.uniform(-1, 1, value.size) < value, 1.0, -1.0)  # with mean `value`
    found = reliability(value, outcome, np.arange(value.size))
    assert found.count.sum() == value.size and found.count.size == 12
    assert (np.abs(found.value - found.outcome) < 2 * found.half_width).all()
    assert found.error < 0.03 and explained(value, outcome) == pytest.approx(1 / 3, abs=0.03)


def test_values_that_are_too_high_are_seen() -> None:
    outcome = np.linspace(-1, 1, 1200)
    found = reliability(outcome + 0.25, outcome, np.arange(1200))
    assert found.error == pytest.approx(0.25) and (found.value > found.outcome).all()


def test_intervals_are_over_games() -> None:
    """Counting each game ten times does not narrow the interval."""
    random = np.random.default_rng(4)
    value, outcome = random.normal(size=500), random.normal(size=500)
    once = reliability(value, outcome, np.arange(500))
    often = reliability(np.repeat(value, 10), np.repeat(outcome, 10), np.repeat(np.arange(500), 10))
    assert often.half_width == pytest.approx(once.half_width, rel=0.05)


def test_equal_values_are_one_bin() -> None:
    found = reliability(np.zeros(50), np.ones(50), np.arange(50))
    assert found.count.tolist() == [50] and found.error == 1


def test_one_game_tells_nothing_of_its_spread() -> None:
    found = reliability(np.repeat([0.0, 1.0], 20), np.repeat([0.5, 2.0], 20), np.repeat([7, 8], 20), bins=2)
    assert found.outcome.tolist() == [0.5, 2.0] and np.isnan(found.half_width).all()


@pytest.mark.parametrize("page", ["report", "review"])
def test_text_of_pages_has_the_contrast_that_people_need(page: str) -> None:
    """By day, by night and on paper: each colour of text on each ground, also of suits, and of seats in a graph."""
    css = (ROOT / "evaluate" / page / "page.html.j2").read_text()
    colours: dict[str, str] = {}
    suits, sides = (
        re.findall(rf"{name} \{{ \w+: (#\w+)", css) for name in (r"\.(?:denari|coppe|spade|bastoni)", r"text\.side\d")
    )
    for number, block in enumerate(re.findall(r":root \{(.*?)\}", css, re.DOTALL)):
        colours |= dict(re.findall(r"--(\w+): (#\w+)", block))
        of_text = {name: colours[name] for name in ("ink", "soft", "accent", *GRADES) if name in colours}
        of_text |= dict(enumerate(each for found in (suits, sides) for each in found[4 * number : 4 * number + 4]))  # type: ignore[arg-type]
        grounds = {name: colours[name] for name in ("paper", "shade", "panel") if name in colours}
        pairs = {
            (a, b): contrast(of_hex(text), of_hex(ground))
            for a, text in of_text.items()
            for b, ground in grounds.items()
        }
        assert len(pairs) >= 6 and {pair: ratio for pair, ratio in pairs.items() if ratio < LEAST} == {}, number
