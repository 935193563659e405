"""A game from outside of the repository is found by `hydra.searchpath` alone; its training: tests/briscola."""

import pytest

from busso.train.__main__ import main


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ([], "game: there is no 'kuhn_poker'"),
        (["hydra.searchpath=[/nowhere]"], "hydra.searchpath: there is no folder"),
    ],
    ids=["none", "no folder"],
)
def test_without_a_search_path_it_is_not_found(
    path: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["game=kuhn_poker", *path, "--cfg", "job"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("error: ") and message in line
    assert "hydra.searchpath=[FOLDER/conf]" in line or path
