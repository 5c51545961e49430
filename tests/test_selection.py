"""Which files of tests ``--quick`` and ``--changed`` choose, in a small repository and in this one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.import_graph import ImportGraph
from tests.support.selection import changed, differing, quick

FILES = {
    "skillpress/__init__.py": "",
    "skillpress/names.py": "import json\n",
    "skillpress/learn/__init__.py": "",
    "skillpress/learn/model.py": "import torch\n",
    "skillpress/learn/loss.py": "from skillpress.learn.model import Model\nfrom skillpress import names\n",
    "skillpress/learn/later.py": "def model():\n    from skillpress.learn import model\n",
    "skillpress/play/__init__.py": "",
    "skillpress/play/walls.py": "import subprocess\n",
    "skillpress/play/typed.py": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import torch\n",
    "skillpress/play/words.txt": "",
    "tests/__init__.py": "",
    "tests/conftest.py": "import subprocess\n",
    "tests/support/__init__.py": "",
    "tests/support/starting.py": "def start():\n    import subprocess\n",
    "tests/test_names.py": "from skillpress.names import NAMES\n",
    "tests/test_nothing.py": "",
    "tests/test_support.py": "from tests.support.starting import start\n",
    "tests/skillpress/learn/test_loss.py": "from skillpress.learn import loss\n",
    "tests/skillpress/learn/test_later.py": "from skillpress.learn.later import model\n",
    "tests/skillpress/play/test_walls.py": "from skillpress.play import walls\n",
    "tests/skillpress/play/test_typed.py": "from skillpress.play import typed\nFILE = 'params.yaml'\n",
    "params.yaml": "",
    "docs/page.md": "",
    "tests/docs/test_pages.py": "",
}


@pytest.fixture
def small(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def names(files: set[Path]) -> set[str]:
    return {file.stem.removeprefix("test_") for file in files}


def test_a_file_is_reached_through_packages_modules_and_names_that_they_define(small: Path) -> None:
    graph = ImportGraph(small)

    def reached(name: str, functions: bool) -> set[str]:
        return {str(file.relative_to(small)) for file in graph.reached([small / name], functions)}

    packages = {"skillpress/__init__.py", "skillpress/learn/__init__.py"}
    loss = {"skillpress/learn/loss.py", "skillpress/learn/model.py", "skillpress/names.py"}
    assert reached("skillpress/learn/loss.py", functions=False) == packages | loss
    later = packages | {"skillpress/learn/later.py"}
    assert reached("skillpress/learn/later.py", functions=False) == later
    assert reached("skillpress/learn/later.py", functions=True) == later | {"skillpress/learn/model.py"}


def test_quick_is_what_imports_nothing_heavy_and_starts_nothing(small: Path) -> None:
    """What a function of the library imports when it is called does not count; those of tests are called."""
    assert names(quick(small)) == {"names", "nothing", "later", "typed", "pages"}


@pytest.mark.parametrize(
    ("file", "expected"),
    [
        ("skillpress/names.py", {"names", "loss"}),
        ("skillpress/learn/model.py", {"loss", "later"}),
        ("skillpress/play/words.txt", {"walls", "typed"}),
        ("skillpress/play/walls.py", {"walls", "typed"}),
        ("tests/support/starting.py", {"support"}),
        ("tests/test_nothing.py", {"nothing"}),
        ("params.yaml", {"typed"}),
        ("docs/page.md", {"pages"}),
        ("README.md", set()),
    ],
)
def test_a_change_touches_what_imports_it_what_is_in_its_room_and_what_says_its_name(
    file: str, expected: set[str], small: Path
) -> None:
    assert names(changed(small, [small / file])) == expected


def test_what_conftest_imports_touches_all_tests_below_it(small: Path) -> None:
    (small / "tests" / "skillpress" / "conftest.py").write_text("from skillpress.names import NAMES\n")
    assert names(changed(small, [small / "skillpress" / "names.py"])) == {
        "names", "loss", "later", "walls", "typed"
    }  # fmt: skip


def test_what_differs_is_what_was_committed_what_was_not_and_what_is_new(small: Path) -> None:
    def git(*words: str) -> None:
        identity = ("-c", "user.name=nobody", "-c", "user.email=nobody@example.org")
        subprocess.run(["git", *identity, *words], cwd=small, check=True, capture_output=True)

    git("init", "--initial-branch", "main")
    git("add", "--all")
    git("commit", "--message", "all")
    assert differing(small) == set()
    git("checkout", "-b", "work")
    (small / "params.yaml").write_text("seed: 1")
    git("commit", "--all", "--message", "a seed")
    (small / "skillpress" / "names.py").write_text("")
    (small / "new.py").touch()
    assert differing(small) == {small / "params.yaml", small / "skillpress" / "names.py", small / "new.py"}
    with pytest.raises(pytest.UsageError, match="merge-base elsewhere HEAD"):
        differing(small, "elsewhere")


def test_a_quick_run_imports_neither_torch_nor_an_orchestrator(repository: Path) -> None:
    """Collecting is importing."""
    code = """
import sys, pytest
code = pytest.main(["--quick", "--collect-only", "-q", "tests/skillpress/core", "tests/skillpress/skills"])
sys.exit(code or ", ".join({"torch", "prefect", "dvc", "mlflow", "playwright"} & set(sys.modules)) or 0)
"""
    found = subprocess.run(
        [sys.executable, "-c", code], cwd=repository, capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONPATH": str(repository)},
    )  # fmt: skip
    assert found.returncode == 0 and "files of tests were chosen" in found.stdout, found.stdout + found.stderr
