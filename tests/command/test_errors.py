"""Errors: key, hint, and the line that users see."""

import copy
import importlib
import pickle
import pkgutil
from contextlib import suppress
from pathlib import Path

import pytest

import busso
from busso.base.errors import InputError
from busso.command.app import CommandEnd, JobError
from busso.command.main import command as as_command
from busso.command.settings.checks import SettingsError, require
from busso.train.rollout.backend import BackendLostError
from busso.train.run.checkpoint import CheckpointError
from busso.train.settings.dqn import LearnerSettings
from busso.train.settings.resolve import settings_of


def test_the_line_is_key_problem_and_way_out() -> None:
    assert str(InputError("game.limit", "0.5 to 7.5, not 8")) == "game.limit: 0.5 to 7.5, not 8"
    assert str(InputError(Path("a/b"), "is there", "name another")) == "a/b: is there; name another"
    assert str(InputError("", "what Hydra says")) == "what Hydra says"
    with pytest.raises(SettingsError) as caught:
        require(False, "seed", "0 or more", -1)
    assert (caught.value.key, caught.value.problem, caught.value.hint) == ("seed", "expected 0 or more, not -1", "")


@pytest.mark.parametrize("bug", [TypeError("no len()"), ValueError("not in list"), KeyError("lr")])
def test_a_bug_is_no_error_of_the_user(bug: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the checks of settings, from where Hydra and OmegaConf call them; their own errors are the user's."""

    def fail(settings: LearnerSettings) -> None:
        raise bug

    monkeypatch.setattr(LearnerSettings, "__post_init__", fail)
    with pytest.raises(type(bug), match=str(bug).strip("'()")):
        settings_of(["seed=1"])
    with pytest.raises(SettingsError):
        settings_of(["seed=one"])


def test_an_error_of_an_error_keeps_the_way_out() -> None:
    inner = InputError("greedy:depth=3", "greedy has no options", "leave them out")
    outer = SettingsError("players", inner)
    assert (outer.key, outer.hint) == ("players", "leave them out") and str(outer) == f"players: {inner}"
    again = SettingsError("players", outer)  # the key is not repeated
    assert again.args == outer.args and str(again) == str(outer)
    other = SettingsError("match", inner, "null plays single games")
    assert str(other) == f"match: {inner}; null plays single games" and other.hint == "null plays single games"
    assert str(SettingsError("by", ValueError("no card"))) == "by: no card"


def raised(number: int) -> None:
    error = SettingsError("learner.lr", "too great", f"say {number}")
    error.exit_code = number
    raise error


def errors_of_busso(kind: type[BaseException] = BaseException) -> set[type[BaseException]]:
    """Return all exception classes in busso's modules, which are imported."""
    found = set().union(*(errors_of_busso(each) for each in kind.__subclasses__()))
    return found | ({kind} if kind.__module__.startswith("busso.") else set())


def test_every_error_is_made_again_from_its_pickle_and_from_its_text(monkeypatch: pytest.MonkeyPatch) -> None:
    for each in pkgutil.walk_packages(busso.__path__, "busso."):
        with suppress(ModuleNotFoundError):  # the extra is not installed
            importlib.import_module(each.name)
    monkeypatch.setattr(JobError, "all", [])
    kinds = errors_of_busso()
    assert {InputError, SettingsError, BackendLostError, CheckpointError, JobError, CommandEnd} < kinds
    for kind in kinds:
        names_key = issubclass(kind, InputError)
        error = kind(*(("learner.lr", "too great", "say 1e-3") if names_key else ("too great",)))
        error.exit_code = 7
        for other in (pickle.loads(pickle.dumps(error)), copy.copy(error), copy.deepcopy(error)):
            assert type(other) is kind and (other.args, other.exit_code) == (error.args, 7)
        says = "learner.lr: too great; say 1e-3" if names_key else "too great"
        assert str(error) == str(kind(says)) == says, kind
    assert SettingsError(InputError("seed", "below 0", "give 1")).args == ("seed", "below 0", "give 1")


def test_a_command_ends_with_its_line_and_exit_code(capsys: pytest.CaptureFixture[str]) -> None:
    def command(arguments: object) -> int:
        raised(3)
        return 0

    assert as_command(command)([]) == 3
    assert capsys.readouterr() == ("", "error: learner.lr: too great; say 3\n")
