"""Old spellings: one line that names the new one on a command line, today's names in what was saved with them."""

from pathlib import Path

import pytest

from command.settings.checks import SettingsError
from command.settings.compose import compose
from command.settings.renamed import EXPERIMENTS, KEYS, renewed
from tests.train.runs import small
from train.__main__ import main
from train.run.checkpoint import checkpoint
from train.settings.dqn import TrainSettings

OLD = {
    "learner.average=0.5": "learner.average: it is learner.ema_decay now",
    "rollout.batch=64": "rollout.batch: it is rollout.games now",
    "exploration.updates=500": "exploration.updates: it is exploration.share, of the budget of the run now",
    "experiment=quick": "experiment: quick is no experiment: it is the default now",
    "experiment=report_2p_credits_no_fold": "experiment: report_2p_credits_no_fold is study_2p_credits_no_fold now",
    "game.reward=seed": "game.reward: seed is study now",
    "evaluation.opponents=[random,seed_heuristic]": "evaluation.opponents: seed_heuristic is study_heuristic now",
}


@pytest.mark.parametrize("override", OLD)
def test_an_old_spelling_names_the_new_one(override: str) -> None:
    with pytest.raises(SettingsError) as caught:
        compose(TrainSettings, "train", [override])
    assert str(caught.value) == OLD[override]


def test_new_names_are_there() -> None:
    conf = Path(__file__).parent.parent / "conf"
    text = "".join(path.read_text() for path in conf.rglob("*.yaml"))
    assert all(
        f"{new.rpartition('.')[2]}:" in text and f"{old.rpartition('.')[2]}:" not in text for old, new in KEYS.items()
    )
    assert (conf / "experiment" / f"{EXPERIMENTS['seed_tressette']}.yaml").exists()


def test_saved_settings_get_the_names_of_today() -> None:
    old = {
        "game": {"name": "tressette", "reward": "seed"},
        "seed": 3,
        "learner": {"average": 0.9, "min_replay": 7, "lr": 1.0},
        "behaviour": [{"until": None, "mix": {"seed_heuristic": 0.5, "network": 0.5}}],
        "evaluation": {"opponents": ["random", "seed_heuristic"]},
    }
    assert renewed(old) == {
        "game": {"name": "tressette", "reward": "study"},
        "seed": 3,
        "learner": {"ema_decay": 0.9, "learning_starts": 7, "lr": 1.0},
        "behaviour": [{"until": None, "mix": {"study_heuristic": 0.5, "network": 0.5}}],
        "evaluation": {"opponents": ["random", "study_heuristic"]},
    }
    assert renewed({"algo": "q_learning", "iterations": 5})["algo"] == "batch_q_learning"
    assert renewed({"algo": "q_learning", "episodes": 5})["algo"] == "q_learning"


def test_a_run_of_before_the_renaming_goes_on(tmp_path: Path) -> None:
    """Its checkpoint has the old keys."""
    more = ["game.reward=study", "learner.ema_decay=0.9", "episodes=96"]
    assert main(small(tmp_path, *more)) == 0
    (newest, *_) = checkpoint.listed(tmp_path / "tressette" / "small" / "checkpoints")
    state = checkpoint.load(newest)
    learner = state["settings"]["learner"]
    learner["average"] = learner.pop("ema_decay")
    learner["min_replay"] = learner.pop("learning_starts")
    state["settings"]["game"]["reward"] = "seed"
    checkpoint.save(newest, state)
    assert main(small(tmp_path, *more[:2], "episodes=160")) == 0
    (newest, *_) = checkpoint.listed(newest.parent)
    state = checkpoint.load(newest)
    assert state["counters"]["episodes"] == 160 and state["settings"]["learner"]["ema_decay"] == 0.9
    assert main(small(tmp_path, more[0], "learner.ema_decay=0.8", "episodes=192")) == 2
