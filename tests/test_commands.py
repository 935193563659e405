"""Every documented command runs: those of README and docs with their settings, and every target of the Makefile."""

import json
import re
import subprocess
from importlib import import_module
from pathlib import Path

import pytest

from command.busso import COMMANDS
from tests.bench.__main__ import main as bench
from tests.pages import ROOT, commands
from train.__main__ import main as train

# Without settings, or without --cfg: tests/test_busso.py holds that they exist.
WITHOUT_CFG = {"completion", "curves", "doctor", "replay", "warm"}
# Games of one's own: tests/test_howto.py runs them.
ELSEWHERE = re.compile(r"hydra\.searchpath|\bgame=(?!(?:blackjack|sette_mezzo|spike|tressette)\b)")
COMMANDS_OF_PAGES = [
    (name, arguments)
    for name, arguments in dict.fromkeys(commands())
    if name in COMMANDS and name not in WITHOUT_CFG and not ELSEWHERE.search(" ".join(arguments))
]
TARGETS = re.findall(r"^([a-z-]+):.*##", (ROOT / "Makefile").read_text(), re.M)


@pytest.mark.parametrize(
    ("name", "arguments"), COMMANDS_OF_PAGES, ids=lambda each: each if isinstance(each, str) else " ".join(each)
)
def test_a_command_of_the_pages_has_settings_that_exist(
    name: str,
    arguments: tuple[str, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """In a folder with an experiment of a study, where runs that others begin with are not trained yet."""
    study = tmp_path / "runs" / "tressette" / "lr" / "experiment"
    study.mkdir(parents=True)
    (study / "lr.yaml").write_text("# @package _global_\nlearner:\n  lr: 1e-4\n")
    monkeypatch.chdir(tmp_path)
    typed = [re.sub(r"^(network.init_from=)runs/tressette/default$", r"\1champion", each) for each in arguments]
    few = re.compile(r"^(seed=\d+),.*|^(row=)all$")  # a composed run takes 0.1 s
    typed = [few.sub(lambda found: found[1] or "row=recipe", each) for each in typed]
    main = import_module(COMMANDS[name].module).main
    if "--help" in typed:
        with pytest.raises(SystemExit, match="0"):  # argparse
            main(typed)
    elif name == "compare" and "--multirun" in typed:  # it looks for the runs of the grid first
        assert main(typed) == 2
        assert "no run of this grid has started" in capsys.readouterr().err
        return
    else:
        assert main([*typed, "--cfg"]) == 0
    assert capsys.readouterr().out.count(":") > 3


def test_help_explains_every_group(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:  # argparse
        train(["--help"])
    assert end.value.code == 0
    text = capsys.readouterr().out
    assert all(word in text for word in ("n_step", "gpus_per_worker", "first_leader", "experiment", "spike_n"))


def test_there_are_such_commands() -> None:
    assert {"train", "tournament", "play", "compare"} <= {name for name, _ in COMMANDS_OF_PAGES} and len(TARGETS) >= 10


@pytest.mark.parametrize("target", TARGETS)
def test_make_target(target: str) -> None:
    subprocess.run(["make", "-n", target], cwd=ROOT, check=True, capture_output=True)


def test_make_help_lists_the_targets() -> None:
    text = subprocess.run(["make", "help"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    assert all(target in text for target in TARGETS)


def test_a_figure_of_the_benchmark(capsys: pytest.CaptureFixture[str]) -> None:
    assert bench(["exact_solutions"]) == 0
    figure, _ = map(json.loads, capsys.readouterr().out.splitlines())
    assert figure["value"] <= figure["target"] == 2
