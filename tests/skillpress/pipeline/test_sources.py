"""Reading a Python file: a digest that changes only with the file's meaning, and the file's imports."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from skillpress.pipeline.sources import Source, SourceError, Sources, Table, read_source

BASE = '''
"""What this is."""

from json import dumps

LIMIT = 3
"""The most."""


def double(number: int) -> int:
    """Twice as much."""
    return number * 2
'''


def read(text: str, module: str = "lab.part", is_package: bool = False) -> Source:
    return read_source(dedent(text), module, is_package)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("What this is.", "What it really is."),
        ("The most.", "No more than this."),
        ("Twice as much.", "The double."),
        ("LIMIT = 3", "LIMIT = 3  # of all"),
        ("return number * 2", "return (\n        number\n        * 2\n    )"),
        ('    """Twice as much."""\n', ""),
    ],
)
def test_a_docstring_a_comment_and_layout_change_no_digest(old: str, new: str) -> None:
    assert old in BASE
    assert read(BASE.replace(old, new)).digest == read(BASE).digest


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("LIMIT = 3", "LIMIT = 4"),
        ("number * 2", "number + number"),
        ("from json import dumps", "from json import loads"),
        ("number: int", "number: float"),
        ("double", "twice"),
        ("LIMIT = 3", 'LIMIT = 3\nNAME = """What this is."""'),
    ],
)
def test_everything_else_changes_it(old: str, new: str) -> None:
    assert old in BASE
    assert read(BASE.replace(old, new)).digest != read(BASE).digest


def test_a_class_that_is_nothing_but_its_docstring_has_a_digest() -> None:
    text = 'class Wrong(Exception):\n    """Bad."""\n'
    assert read(text).digest == read(text.replace("Bad", "Worse")).digest
    assert read(text).digest != read(text.replace("Wrong", "Right")).digest


def test_imports_inside_functions_count_and_those_for_a_type_checker_do_not() -> None:
    found = read(
        """
        from typing import TYPE_CHECKING

        if TYPE_CHECKING:
            import torch
        else:
            import numpy

        def later():
            from lab.engine import Engine, made
            import lab.other as other
        """
    )
    modules = dict(found.imports)
    assert modules["lab.engine"] == ("Engine", "made")
    assert modules.keys() == {"typing", "numpy", "lab.engine", "lab.other"}


@pytest.mark.parametrize(
    ("is_package", "statement", "module"),
    [
        (False, "from . import near", "lab"),
        (False, "from .near import x", "lab.near"),
        (True, "from .near import x", "lab.part.near"),
        (True, "from ..far import x", "lab.far"),
    ],
)
def test_relative_imports_are_those_of_the_package(is_package: bool, statement: str, module: str) -> None:
    assert [name for name, _ in read(statement, is_package=is_package).imports] == [module]


REGISTRY = """
from skillpress.core.registry import ALGORITHMS, Registry, lookup

OWN = Registry("words", "policy.words", {"one": "lab.one:One"})


def find(name):
    return lookup(OWN, name, "policy.words")
"""


def test_a_registry_is_no_part_of_the_digest_and_is_read_as_a_table() -> None:
    more = REGISTRY.replace('"lab.one:One"', '"lab.one:One", "two": "lab.two:Two"')
    assert read(more).digest == read(REGISTRY).digest
    entries = {"one": "lab.one:One", "two": "lab.two:Two"}
    assert read(more).tables == {"OWN": Table("policy.words", "words", entries)}
    assert not {"lab.one:One", "lab.two:Two"} & set(read(more).texts), "they are chosen by name"


def test_who_imports_the_lookup_looks_names_up_in_the_tables_that_it_knows() -> None:
    found = read(REGISTRY)
    assert set(found.looks_up) == {("skillpress.core.registry", "ALGORITHMS"), ("lab.part", "OWN")}
    assert not read("from skillpress.core.registry import ALGORITHMS").looks_up


def test_a_text_may_name_a_module_and_beside_a_file_that_asks_where_it_lies_a_neighbour() -> None:
    command = 'COMMAND = ("lab.worker", "two words", "runner.py")\n'
    assert read(command).texts == ("lab.worker", "runner.py")
    assert not read(command).asks
    asking = command + 'HERE = __file__\nNAME = "templates"\n'
    assert read(asking).asks and "templates" in read(asking).texts


def test_a_file_that_is_not_python_is_named_with_its_line(tmp_path: Path) -> None:
    broken = tmp_path / "broken.py"
    broken.write_text("a = 1\nb = = 2\n")
    with pytest.raises(SourceError, match=r"broken\.py:2: is not Python"):
        Sources().source(broken, "broken")


def test_a_later_process_finds_what_was_read_until_the_file_changes(tmp_path: Path) -> None:
    file, cache = tmp_path / "part.py", tmp_path / "kept" / "sources.json"
    file.write_text(BASE)
    first = Sources(cache)
    found = first.source(file, "part")
    first.save()
    again = Sources(cache)
    assert again.source(file, "part") == found
    again.save()
    file.write_text(BASE + "MORE = 1\n")
    assert Sources(cache).source(file, "part") != found


def test_a_damaged_cache_is_none(tmp_path: Path) -> None:
    file, cache = tmp_path / "part.py", tmp_path / "sources.json"
    file.write_text(BASE)
    cache.write_text("{broken")
    assert Sources(cache).source(file, "part") == read_source(BASE, "part", False)
