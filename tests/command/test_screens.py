"""Screens of a terminal: bars that move, whole lines above them, no control codes, and help that fits."""

import re
from pathlib import Path

import pytest

from busso.command.plain_console import PlainConsole
from busso.command.settings.compose import compose
from busso.train.run.progress import results_table
from busso.train.settings.dqn import TrainSettings
from tests.screen import screens
from tests.train.runs import SMALL

ROOT = Path(__file__).parents[2]
CODES = re.compile(r"\\x1b|\\r|\x1b|\^\[")  # control characters, or as letters

MANY_LINES = """
import logging, time
from busso.base.terminal import ScreenHandler, VisibleFormatter
from busso.command.console import Progress, result_console
from busso.command.main import command

@command
def main(arguments):
    screen = ScreenHandler()
    screen.setFormatter(VisibleFormatter("%(message)s"))
    logging.getLogger().addHandler(screen)
    with Progress("playing", 10, "deals") as bar:
        for deal in range(10):
            time.sleep(0.1)
            bar.advance(1, "of \\x1b[2J")
            if deal == 4:
                logging.warning("logged \\x1b[2J")
                print("printed")
                bar.say("said \\x1b[2J")
    result_console().print("results")

raise SystemExit(main([]))
"""


def test_lines_stand_above_a_bar_and_text_of_files_is_harmless(tmp_path: Path) -> None:
    (tmp_path / "many_lines.py").write_text(MANY_LINES)
    path = {"PYTHONPATH": f"{tmp_path}:{ROOT}"}
    found = screens("many_lines", columns=90, rows=12, env=path)
    above = ["logged \\x1b[2J", "printed", "said \\x1b[2J"]
    with_bar = [screen.splitlines() for screen in found if "said" in screen and "playing" in screen]
    assert with_bar and all(lines[:3] == above and len(lines) == 4 for lines in with_bar)
    assert "━" in with_bar[-1][3] and "of 10 deals of \\x1" in with_bar[-1][3]
    assert found[-1].splitlines() == [*above, "results"]


def test_a_tournament_shows_its_bar_and_then_only_results(tmp_path: Path) -> None:
    players = "players=[greedy,random,monte_carlo:samples:5]"
    arguments = [players, "deals=512", "batch_deals=64", "processes=1", f"folder={tmp_path / 'out'}"]
    found = screens("busso.evaluate.tournament", arguments, columns=50, rows=60)
    bars = [screen for screen in found if "playing" in screen]
    assert bars and all(screen.count("playing") == 1 for screen in bars)
    assert "━" in bars[-1] and not any(CODES.search(screen) for screen in found)
    assert "playing" not in found[-1] and "Elo" in found[-1]


def test_training_shows_rates_curves_and_what_to_type_next(tmp_path: Path) -> None:
    run = [*SMALL, f"runs={tmp_path}", "name=small", "episodes=640", "evaluation.every_episodes=160"]
    found = screens("busso.train", [*run, "evaluation.opponents=[random,greedy]"], columns=80)
    assert not any(CODES.search(screen) for screen in found)
    bar = next(screen for screen in reversed(found) if re.search(r"tressette/small .*━.* \d+% ", screen))
    assert re.search(r"episodes +[\d,]+ env steps +[\d,]+ updates\n +[\d,]+ env steps/s +[\d,]+ updates/s\n", bar)
    assert re.search(r"games won against\n +random +\d+\.\d% +[▁▂▃▄▅▆▇█]{2,}\n +greedy +\d+\.\d% +[▁▂▃▄▅▆▇█]{2,}", bar)
    assert any(re.search(r"final evaluation .* deals", screen) for screen in found)
    end = found[-1]
    assert "games won, 95% interval" in end and "tressette/small ━" not in end
    for line in (f"busso report {tmp_path}/tressette/small", "busso play game=tressette", "busso compare"):
        assert line in end.replace("\n", "")


@pytest.mark.parametrize("columns", [40, 80])
def test_results_are_whole_on_a_narrow_screen_or_beside_a_long_name(
    columns: int, capsys: pytest.CaptureFixture[str]
) -> None:
    name = "runs/tressette/a_larger_network_for_an_hour"
    found = {"deals": 4096, "win_rate": (0.717, 0.008), "win_rate_interval": (0.708, 0.725), "points": (2.5437, 0.0774)}
    PlainConsole(width=columns).print(results_table("tressette/small", "points", {name: found}))
    rows = [line.split("│")[1:-1] for line in capsys.readouterr().out.splitlines() if line.startswith("│")]
    cells = ["".join("".join(cell).split()) for cell in zip(*rows, strict=True)]
    assert cells == [name, "71.7%(70.8to72.5)", "+2.5437±0.0774"]


def test_a_local_grid_ends_with_its_table(tmp_path: Path) -> None:
    found = screens("busso.train", ["-m", *SMALL, f"runs={tmp_path}", "episodes=128", "seed=1,2", "game=spike"])
    assert re.search(r"seed=1 .*┃? *2 ", found[-1].rpartition("┃ run")[2])


def test_help_of_training_is_one_screen() -> None:
    """Of the settings that people change, each of which exists, and where the others are."""
    lines = screens("busso.train", ["--help"], columns=80, rows=24)[-1].splitlines()
    assert lines[0].startswith("`busso train [key=value ...]`") and any("--help-all" in line for line in lines)
    typed = [line.split()[0] for line in lines if re.match(r"  [a-z_.]+=", line)]
    assert len(typed) == 10
    compose(TrainSettings, "train", [each for each in typed if not each.startswith(("game=", "algo="))])


def test_a_quiet_command_shows_results_alone(tmp_path: Path) -> None:
    players = "players=[greedy,random,monte_carlo:samples:5]"
    given = ["-q", players, "deals=256", "batch_deals=64", "processes=1", f"folder={tmp_path / 'out'}"]
    found = screens("busso.evaluate.tournament", given, rows=60)
    assert "Elo" in found[-1] and not any("playing" in screen or "written to" in screen for screen in found)


def test_a_list_of_runs_breaks_no_name_and_loses_no_letter_of_it(tmp_path: Path) -> None:
    names = ("short", "learner.lr=0.001,learner.batch_size=2048,network.hidden=[256,256],seed=3")
    for name in names:
        (tmp_path / "spike" / name / "checkpoints").mkdir(parents=True)
        (tmp_path / "spike" / name / "config.yaml").write_text("game:\n  name: spike\nminutes: 1\n")
    for columns in (60, 80, 160):
        screen = screens("busso.train.runs", [str(tmp_path)], columns, rows=20)[-1]
        assert re.search(r"^spike +short +stopped +\d+ s$", screen, re.MULTILINE)
        wrapped = re.sub(r"\s|^spike|stopped|\d+ s$", "", screen, flags=re.MULTILINE)
        assert names[1] in wrapped
