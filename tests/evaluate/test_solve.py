"""`busso solve`: output, pictures, dialogue, and errors."""

import builtins
import csv
from collections.abc import Iterator
from pathlib import Path

import pytest
from matplotlib.image import imread

from busso.evaluate.solve.__main__ import main
from busso.train.__main__ import main as train
from busso.train.run import checkpoint
from tests.errors import key_of


def lines_of(capsys: pytest.CaptureFixture) -> list[str]:
    return capsys.readouterr().out.splitlines()


def test_every_hand_of_a_start(capsys: pytest.CaptureFixture) -> None:
    assert main(["game=sette_mezzo", "player=2", "opponent=6", "limit=5"]) == 0
    lines = lines_of(capsys)
    assert lines[0] == "sette_mezzo: limit 5, reward value"
    assert lines[2].split() == ["hand", "decision", "win", "tie", "lose", "expected", "optimal", "play"]
    hands = [line for line in lines[3:] if line and not line.startswith("2 (2) against 6: ")]
    assert len(hands) == len(set(hands)) > 50
    for line in hands:
        text, numbers = line.split(" against 6 ")
        decision, win, tie, lose, expected = numbers.split()[:5]
        chances = [float(win), float(tie), float(lose)]
        assert sum(chances) == pytest.approx(1, abs=2e-6) and float(expected) == pytest.approx(
            chances[0] - chances[2], abs=2e-6
        )
        score = float(text[text.index("(") + 1 : text.index(")")])
        if score > 6:
            assert decision == "stick" and chances == [1, 0, 0]
        elif score == 6:
            assert decision == "stick" and chances == [0, 1, 0]
        else:
            assert decision == "hit"  # less than 6 loses for certain, since the opponent has stopped
    assert lines[-1].startswith("2 (2) against 6: hit: win 0.27")


def test_all_starts(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    assert main(["game=sette_mezzo", "reward=study", f"folder={tmp_path}"]) == 0
    lines = lines_of(capsys)
    assert lines[0] == "sette_mezzo: limit 5.0, reward study"
    decisions = [line.split() for line in lines if len(line.split()) == 11 and set(line.split()[1:]) <= {"H", "S"}]
    assert [row[0] for row in decisions] == list("A234567FCR")
    values = [line.split() for line in lines if len(line.split()) == 11 and line.split()[1][0] in "+-"]
    assert [row[0] for row in values] == list("A234567FCR")
    assert values[5][6] == "+1.000"  # 6 against 6: a tie counts as a win
    with (tmp_path / "states.csv").open() as file:
        rows = {row["state"]: row for row in csv.DictReader(file)}
    assert rows["6 (6) against 6"]["expected"] == "1.0"
    assert any(line.startswith("hit_below_5 ") for line in lines)
    for name in ("optimal_policy_starts.png", "optimal_values_starts.png"):
        assert imread(tmp_path / name).std() > 0.05


def test_blackjack(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    assert main(["game=blackjack", f"folder={tmp_path}"]) == 0
    lines = lines_of(capsys)
    start = lines.index("hard sums: decision (player's sum down, dealer's card across)")
    rows = {line.split()[0]: line.split()[1:] for line in lines[start + 3 : start + 20]}
    assert set(rows["20"]) == {"S"} and set(rows["11"]) == {"H"} and list(rows) == [str(n) for n in range(20, 3, -1)]
    policies = dict(line.split() for line in lines if line.startswith("hit_below_"))
    assert list(policies) == [f"hit_below_{n}" for n in range(4, 22)]
    assert float(policies["hit_below_17"]) > float(policies["hit_below_14"]) > float(policies["hit_below_4"])
    optimal = next(line for line in lines if line.startswith("optimal play over all deals"))
    win, tie, lose, expected = (float(part.rsplit(" ", 1)[1]) for part in optimal.split(": ", 1)[1].split(", "))
    assert expected > float(policies["hit_below_17"])
    # Ties lose, and nothing is discounted, whatever discount tables learn with.
    assert "discount" not in lines[0] and expected == pytest.approx(win - tie - lose, abs=2e-6)
    with (tmp_path / "states.csv").open() as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        assert float(row["expected"]) == pytest.approx(float(row["win"]) - float(row["tie"]) - float(row["lose"]))
    for name in ("policy_hard", "policy_soft", "values_hard", "values_soft"):
        assert imread(tmp_path / f"optimal_{name}.png").std() > 0.05


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Answer `input` with these texts in turn; then the input ends."""
    typed: list[str] = []

    def answer(prompt: str) -> str:
        print(prompt, end="")
        if not typed:
            raise EOFError
        return typed.pop(0)

    monkeypatch.setattr(builtins, "input", answer)
    return typed


def test_a_conversation(answers: list[str], capsys: pytest.CaptureFixture) -> None:
    answers += ["2", "9", " 6 ", "F", "", "F", "3"]
    assert main(["interactive=true"]) == 0
    lines = lines_of(capsys)
    assert [line.split(": ")[-3].split()[-1] if "win" in line else "again" for line in lines] == [
        "again",  # 9 is not a card
        "card",
        "drawn",
        "again",  # empty input
        "drawn",
        "drawn",
    ]
    assert lines[0].endswith("'9' is not a card (A 2 3 4 5 6 7 F C R); try again")
    assert "hit: win 0.273092, tie 0.181325, lose 0.545583" in lines[1]
    assert "stick: win 0.000000, tie 1.000000" in lines[-1] and not answers


@pytest.mark.parametrize("experiment", ["blackjack_q", "blackjack_mc"])
def test_a_learned_table(tmp_path: Path, experiment: str, capsys: pytest.CaptureFixture) -> None:
    learns = experiment == "blackjack_q"
    budget = [f"episodes={400_000 if learns else 40_000}", "log_every_episodes=100000", f"runs={tmp_path}"]
    assert train([f"experiment={experiment}", *budget]) == 0
    said = lines_of(capsys)
    run = tmp_path / "blackjack" / experiment
    assert main(["game=blackjack", f"table={run}"]) == 0
    lines = lines_of(capsys)
    assert lines[1 : len(said)] == said[1:]  # the same errors as at the end of the run
    assert any(line.startswith("states with the optimal action: 9") for line in lines) == learns
    assert lines[1] == "discount of its values: 0.95"
    expected = -0.168047 if learns else -0.264721  # undiscounted
    assert float(lines[-1].split()[-1]) == pytest.approx(expected, abs=1e-5)
    names = {path.name for path in (run / "pictures").glob("*.png")}
    assert {"learned_values_hard.png", "error_values_soft.png"} <= names
    assert ("learned_policy_hard.png" in names) == learns


def test_tables_that_do_not_fit(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    assert train(["algo=q_learning", "episodes=1000", f"runs={tmp_path}"]) == 0
    run = tmp_path / "blackjack" / "default"
    for more in (["game=sette_mezzo"], ["game=blackjack", "decks=1"], ["game=blackjack", "ties=push"]):
        assert main([*more, f"table={run}"]) == 2
        assert key_of(capsys.readouterr().err, alone=False) == "table"
    path = checkpoint.listed(run / "checkpoints")[0]
    path.write_bytes(path.read_bytes()[:-4] + b"oops")
    assert main(["game=blackjack", f"table={path}"]) == 2
    assert capsys.readouterr().err == f"error: {path}: damaged (its checksum does not match)\n"


@pytest.mark.parametrize(
    ("arguments", "key"),
    [
        (["limit=8"], "game.limit"),
        (["limit=0"], "game.limit"),
        (["game.limit=x"], "game.limit"),
        (["reward=money"], "game.reward"),
        (["player=8", "opponent=2"], "player, opponent"),
        (["player=2"], "opponent"),
        (["opponent=2"], "player"),
        (["player=[F,F,F,F]", "opponent=F"], "player, opponent"),
        (["player=[7,7]", "opponent=F"], "player, opponent"),
        (["game=blackjack", "player=7", "opponent=2"], "player, opponent"),
        (["game=blackjack", "limit=5"], "limit"),
        (["game=tressette"], "game"),
        (["game=chess"], "game"),
        (["table=nowhere"], "nowhere"),
        (["plyer=2"], "plyer"),
    ],
)
def test_errors(arguments: list[str], key: str, capsys: pytest.CaptureFixture) -> None:
    assert main(arguments) == 2
    said = capsys.readouterr().err
    assert key_of(said) == key
