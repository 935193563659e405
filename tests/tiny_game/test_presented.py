"""A game from outside the repository is shown wherever games are shown, without changes elsewhere."""

import io
import re
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from busso.command.settings.compose import compose
from busso.evaluate.report.__main__ import main as report
from busso.evaluate.review.__main__ import main as review
from busso.evaluate.tournament.__main__ import main as tournament
from busso.play.__main__ import main as play
from busso.play.app.application import TableApp
from busso.play.table.settings import PlaySettings
from busso.train.__main__ import main
from busso.train.__main__ import main as train
from busso.train.run.results import read_results
from tests.evaluate.pages import text_of_page
from tests.play.app.pilots import choices_of, driven, text_of, wait
from tests.tiny_game import TYPED
from tests.train.runs import small


@pytest.fixture
def records(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("games")
    given = [TYPED, "players=[random,equilibrium]", "deals=8", "records=8", f"folder={folder}"]
    assert tournament([*given, "processes=1"]) == 0
    return folder / "games.jsonl"


def test_it_is_played_in_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("show\nbet\nreview\nquit\n"))
    monkeypatch.chdir(tmp_path)
    assert play([TYPED, "ui=plain", "seed=4"]) == 0
    said = capsys.readouterr().out
    assert "own card: " in said and "You may: pass, bet" in said and "chips" in said


def test_the_menu_lists_it_and_opens_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    async def script(pilot: Pilot[int]) -> None:
        app = pilot.app
        assert isinstance(app, TableApp)
        await wait(pilot, "the menu", lambda: app.screen is app.menu and "kuhn_poker" in choices_of(app))
        assert "kuhn_poker" in text_of(app) and "Sette e mezzo" in text_of(app)
        await pilot.press("enter")
        await wait(pilot, "the table", lambda: "own card: " in text_of(app))

    driven(TableApp(compose(PlaySettings, "play", ["pace=0", TYPED])), script)


def test_a_run_is_reported_and_reviews(records: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert train([TYPED, *small(tmp_path)]) == 0
    (folder,) = (path.parent for path in tmp_path.rglob("results.json") if path.parent.name != "tensorboard")
    assert report([str(folder), TYPED, "games=200", "measure=false"]) == 0
    page = text_of_page(folder / "report")
    assert "## How it plays" in page and "second action" in page
    capsys.readouterr()
    assert review([str(records), TYPED, f"by={folder}"]) == 0
    said = capsys.readouterr().out
    assert len(re.findall(r"^line \d+, kuhn_poker", said, re.M)) == 16 and "lost: chips a hand" in said
    assert review([str(records), TYPED, f"by={folder}", "format=html", f"to={tmp_path / 'review.html'}"]) == 0
    page = (tmp_path / "review.html").read_text()
    boards = re.findall(r"<dt>own card</dt>\s*<dd>(.*?)</dd>", page, re.S)
    assert len(boards) == page.count("<details") > 16 and all(re.findall(r"\b[JQK]\b", each) for each in boards)


SHORT = ("rollout=local", "minutes=null", "episodes=20000", "learner.samples_per_insert=16", "evaluation.deals=64")

# `honest` bets and calls with the king only. As first seat, a best response bets the jack (queen folds, king calls:
# -1/2), passes the queen (0) and wins 1 with the king: 1/6. As second, it bets whenever honest passes, which then
# folds: 0 with jack and queen, 1 with the king: 1/3. On average 1/4 a game, so 1/2 more than honest.
OF_HONEST = 0.5


@pytest.mark.timeout(240)
def test_it_wins_what_can_be_won(tmp_path: Path) -> None:
    given = ["experiment=best_response", "opponents.only=honest", *SHORT, f"runs={tmp_path}", "name=b"]
    assert main([TYPED, *given]) == 0
    results = read_results(tmp_path / "kuhn_poker" / "b") or {}
    mean, half_width = results["honest"]["chips"]
    assert results.keys() == {"honest"} and results["honest"]["deals"] == 4096
    assert mean + 2 * half_width > 0.9 * OF_HONEST and mean - 2 * half_width < OF_HONEST
