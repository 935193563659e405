"""The list of faults matches the tree, and the script that seeds them reports correctly."""

import ast

import pytest

from tests.faults import ROOT, Fault, load

FAULTS = load()


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
def test_a_fault_fits_the_tree(fault: Fault) -> None:
    text = (ROOT / fault.file).read_text()
    seeded = fault.seeded(text)
    assert seeded != text
    ast.parse(seeded)  # a syntax error is not a fault for tests
    for each in fault.tests:
        file, _, test = each.partition("::")
        assert (ROOT / file).exists(), f"{fault.name}: there is no {file}"
        assert not test or f"def {test}(" in (ROOT / file).read_text(), f"{fault.name}: there is no {each}"
