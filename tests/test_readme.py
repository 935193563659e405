"""README and docs: referenced files exist, every setting is documented, and guides run as written."""

import json
import re
import runpy
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from busso.command.plain_console import PlainConsole
from busso.evaluate.tournament.__main__ import main as tournament
from busso.train.__main__ import main as train
from busso.train.run.progress import results_table
from tests.limits import seconds
from tests.pages import PAGES, ROOT, TEXT
from tests.train.runs import SMALL

SETTINGS = (ROOT / "docs" / "reference" / "settings.md").read_text()


def test_the_page_of_settings_is_current() -> None:
    """`make settings-page` writes it."""
    page = runpy.run_path(str(ROOT / "docs" / "settings.py"))["page"]
    assert "\n".join(page()) + "\n" == SETTINGS


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_and_pictures_exist(page: Path) -> None:
    links = re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text())
    missing = [link for link in links if not link.startswith("https://") and not (page.parent / link).exists()]
    assert not missing


SITE = """
# A page

```
.venv/bin/busso train {long}                    # a comment at the end of a line that is much wider than a page
```

```text
{long} an output {long}
```

<script>
addEventListener("load", () => {{
  const fits = pre => pre.scrollWidth <= pre.clientWidth;
  const copies = pre => !!pre.parentElement.querySelector(".copybtn");
  document.title = JSON.stringify([...document.querySelectorAll("pre")].map(pre => [fits(pre), copies(pre)]));
}});
</script>
"""


def test_the_site_copies_commands_and_cuts_none_off(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "index.md").write_text(SITE.format(long="word " * 40))
    build = ["-W", "-q", "-b", "html", "-c", str(ROOT / "docs"), str(tmp_path), str(tmp_path / "out")]
    subprocess.run([sys.executable, "-m", "sphinx", *build], check=True, timeout=seconds(100))
    page, browser = tmp_path / "out" / "docs" / "index.html", shutil.which("chromium")
    assert "copybutton.js" in page.read_text() and "site.css" in page.read_text()
    if browser is None:
        pytest.skip("no Chromium")
    flags = ["--headless=new", "--no-sandbox", "--window-size=1280,800", f"--user-data-dir={tmp_path / 'profile'}"]
    command = [browser, *flags, "--virtual-time-budget=5000", "--dump-dom", page.as_uri()]
    shown = subprocess.run(command, check=True, capture_output=True, text=True, timeout=seconds(60)).stdout
    assert json.loads(re.findall("<title>(.*)</title>", shown)[0]) == [[True, True], [False, False]]


def test_pictures_say_what_is_on_them() -> None:
    """At least four words: a title is no picture for who cannot see it."""
    texts = {text for page in PAGES for text in re.findall(r"!\[(.*?)\]\(", page.read_text())}
    assert len(texts) > 5 and all(len(text.split()) >= 4 for text in texts), texts


def test_modules_and_targets_in_commands_exist() -> None:
    modules = set(re.findall(r"python -m ((?:tests|busso)\.[a-z_.]+)\b", TEXT))
    assert "tests.bench" in modules
    for module in modules:
        path = ROOT / module.replace(".", "/")
        assert path.with_suffix(".py").exists() or (path / "__main__.py").exists(), module
    targets = set(re.findall(r"(?:`|^)make ([a-z-]+)", TEXT, re.M))
    makefile = (ROOT / "Makefile").read_text()
    assert all(re.search(rf"^{target}:", makefile, re.M) for target in targets)


def test_the_page_of_other_systems_names_every_finding_and_tests_that_exist() -> None:
    page = (ROOT / "docs" / "explanation" / "behaviour.md").read_text()
    shown = re.findall(r"`([^`]+)`", " ".join(re.findall(r"^\|.*\| (`.*`) \|$", page, re.M)))
    tests = {name for name in shown if "/" in name}
    assert tests and all((ROOT / name).exists() for name in tests)
    assert {*shown} - tests == {script.stem for script in (ROOT / "findings").glob("*.sh")}


HOWTO = ROOT / "docs" / "howto"
SHORT = [line for line in SMALL if not line.startswith(("evaluation.opponents", "episodes="))] + ["episodes=64"]


RESULTS = {  # on the pages, by page: name of the run, unit, and for each opponent the share, its ends, margin and half
    "train.md": (
        "tressette/first",
        "points",
        {
            "random": (0.871, 0.865, 0.878, 4.9897, 0.0767),
            "greedy": (0.673, 0.664, 0.682, 2.0366, 0.0793),
            "monte_carlo:samples:10": (0.599, 0.590, 0.607, 1.1116, 0.0794),
        },
    ),
    "own.md": ("mygame/default", "tricks", {"random": (0.868, 0.862, 0.874, 4.5483, 0.0688)}),
}


@pytest.mark.parametrize("page", RESULTS)
def test_results_in_the_tutorial_look_as_printed(page: str, capsys: pytest.CaptureFixture[str]) -> None:
    run, unit, numbers = RESULTS[page]
    found = {
        name: {"deals": 4096, "win_rate": [won, low], "win_rate_interval": [low, high], unit: [margin, half]}
        for name, (won, low, high, margin, half) in numbers.items()
    }
    title, means = f"runs/{run}, best network", "won: the better result; a tie counts one half"
    PlainConsole(width=120).print(results_table(title, unit, found, means))
    lines = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
    assert "\n".join(lines) in (ROOT / "docs" / "tutorial" / page).read_text(encoding="utf-8")


def commands(page: str, command: str) -> list[list[str]]:
    found = re.findall(rf"^\.venv/bin/busso {command} (.*game=(?:\./|examples/).*)$", page, re.M)
    assert found
    return [shlex.split(each) for each in found]


@pytest.fixture
def copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Copy the tutorial's initial files into a folder, and return its text."""
    page = (ROOT / "docs" / "tutorial" / "own.md").read_text(encoding="utf-8")
    (from_path, to), *more = re.findall(r"^cp (\S+) (\S+)$", page, re.M)
    assert not more
    shutil.copytree(ROOT / "examples" / "own", tmp_path / "examples" / "own")
    shutil.copy(ROOT / from_path, tmp_path / to)
    monkeypatch.chdir(tmp_path)
    return page


def test_the_tutorial_trains_and_plays(copied: str, capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in commands(copied, "train"):
        own = any(each.startswith("network=") for each in arguments)
        short = [each for each in SHORT if not (own and each.startswith("network."))]
        assert train([*(each for each in arguments if not each.startswith(("minutes", "episodes"))), *short]) == 0
    for arguments in commands(copied, "tournament"):
        assert (
            tournament([*(each for each in arguments if not each.startswith("deals")), "deals=8", "processes=1"]) == 0
        )
    said = capsys.readouterr().out
    assert "sluff" in said and "champion" in said


def test_the_change_of_the_tutorial_is_refused_as_it_says(copied: str, capsys: pytest.CaptureFixture[str]) -> None:
    (change,) = re.findall(r"^```python\n(@njit\ndef returns.*?)^```$", copied, re.M | re.S)
    (line,) = re.findall(r"^(error: \./mygame\.py.*)$", copied, re.M)
    file = Path("mygame.py")
    text = file.read_text()
    start = text.index("@njit\ndef returns")
    file.write_text(text[:start] + change + text[text.index("\n\n\n", start) :])
    assert train(["game=./mygame.py", "--cfg", "job"]) == 2
    assert capsys.readouterr().err.splitlines() == [line]
    file.write_text(file.read_text().replace("total=TRICKS", "total=TRICKS + 1"))
    assert train(["game=./mygame.py", "--cfg", "job"]) == 0


def test_the_player_of_the_page_plays(capsys: pytest.CaptureFixture[str]) -> None:
    page = (HOWTO / "own_player.md").read_text(encoding="utf-8")
    (in_python,) = re.findall(r"^```python\n(.*?)^```$", page, re.M | re.S)
    exec(compile(in_python, "own_player.md", "exec"), {})
    assert capsys.readouterr().out.count("±") == 2
