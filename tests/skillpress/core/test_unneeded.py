"""Packages that a library imports only because they are installed."""

import subprocess
import sys
from importlib.util import find_spec

import pytest

from skillpress.core.unneeded import unneeded

PACKAGE = "this"
"""A module that no other test imports."""


def test_inside_a_package_is_not_there_and_afterwards_it_is() -> None:
    with unneeded(PACKAGE):
        assert find_spec(PACKAGE) is None
        with pytest.raises(ModuleNotFoundError):
            __import__(PACKAGE)
    assert find_spec(PACKAGE) is not None and PACKAGE not in sys.modules


def test_a_package_that_is_imported_already_stays() -> None:
    with unneeded("sys", "json.decoder"):
        assert sys.modules["sys"] is sys
    assert sys.modules["sys"] is sys


def test_an_error_inside_leaves_nothing_hidden() -> None:
    with pytest.raises(KeyError), unneeded(PACKAGE):
        raise KeyError
    assert PACKAGE not in sys.modules


PROGRAM = """
import sys, torch
from skillpress.core.unneeded import without_dynamo

def twice(number):
    return 2 * number

with without_dynamo():
    assert torch.compile(twice) is twice
print([name for name in sys.modules if name.startswith("torch._inductor.codegen")])
assert torch.compile(twice) is not twice
"""


def test_torch_compiles_nothing_inside_does_not_import_its_compiler_and_compiles_afterwards() -> None:
    said = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    assert said.stdout.strip() == "[]"
