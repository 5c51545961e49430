"""The code that a module runs: in small packages, and compared with an independent reading of this one."""

from __future__ import annotations

import ast
from collections.abc import Callable
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import grimp
import pytest

from skillpress.core import registry
from skillpress.pipeline.closure import Closure, Code

Write = Callable[[dict[str, str]], Code]


@pytest.fixture
def lab(tmp_path: Path) -> Write:
    """Writes files and returns the code of their folder."""

    def written(files: dict[str, str]) -> Code:
        for name, text in files.items():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(text)
        return Code(tmp_path)

    return written


def closure(code: Code, start: str, **chosen: str) -> Closure:
    names = {key.replace("__", "."): [name] for key, name in chosen.items()}
    return code.closure([start], lambda parameter: names.get(parameter, ()))


def test_what_is_imported_is_followed_and_its_siblings_are_not(lab: Write) -> None:
    code = lab(
        {
            "lab/__init__.py": "",
            "lab/start.py": "def run():\n    from lab.used import go\n    import numpy",
            "lab/used.py": "from lab import deeper\ngo = deeper",
            "lab/deeper.py": "",
            "lab/sibling.py": "",
        }
    )
    found = closure(code, "lab.start")
    assert found.files.keys() == {"lab/start.py", "lab/used.py", "lab/deeper.py"}
    assert found.libraries == {"numpy"}


def test_a_package_around_a_module_counts_where_it_imports_anything(lab: Write) -> None:
    files = {
        "lab/__init__.py": '"""Nothing."""',
        "lab/inner/__init__.py": "from lab.inner.more import x",
        "lab/inner/more.py": "x = 1",
        "lab/inner/start.py": "",
    }
    found = closure(lab(files), "lab.inner.start")
    assert found.files.keys() == {"lab/inner/start.py", "lab/inner/__init__.py", "lab/inner/more.py"}


def test_a_name_that_a_package_imports_when_asked_for_is_found(lab: Write) -> None:
    lazy = "if TYPE_CHECKING:\n    from lab.heavy import Heavy\n__getattr__, __dir__ = lazy_names(__name__)"
    code = lab(
        {
            "lab/__init__.py": lazy,
            "lab/heavy.py": "",
            "lab/other.py": "",
            "start.py": "from lab import Heavy",
        }
    )
    assert closure(code, "start").files.keys() == {"start.py", "lab/heavy.py"}


def test_a_module_that_is_started_by_its_name_counts(lab: Write) -> None:
    code = lab({"lab/__init__.py": "", "lab/start.py": 'COMMAND = ["-m", "lab.worker"]', "lab/worker.py": ""})
    assert "lab/worker.py" in closure(code, "lab.start").files


def test_a_module_that_asks_where_it_lies_brings_what_lies_there(lab: Write) -> None:
    files = {
        "lab/__init__.py": "",
        "lab/start.py": 'PAGE = __file__\nRUNNER = "runner.py"\nINSIDE = "inside"',
        "lab/runner.py": "",
        "lab/other.py": "",
        "lab/page/page.css": "",
        "lab/words.csv": "",
        "lab/inside/judge.py": "",
        "lab/apart/__init__.py": "",
        "lab/apart/table.csv": "",
    }
    found = closure(lab(files), "lab.start").files.keys()
    assert found == {
        "lab/start.py",
        "lab/runner.py",
        "lab/page/page.css",
        "lab/words.csv",
        "lab/inside/judge.py",
    }
    files["lab/start.py"] = 'RUNNER = "runner.py"'
    assert closure(lab(files), "lab.start").files.keys() == {"lab/start.py"}


TABLE = """
from skillpress.core.registry import Registry, lookup
WORDS = Registry("words", "policy.words", {"one": "lab.one:One", "two": "lab.two:Two"})
make = lambda name: lookup(WORDS, name, "policy.words")
"""


def test_a_name_brings_its_own_part_and_where_nobody_reads_it_none(lab: Write) -> None:
    files = {"lab/__init__.py": "", "lab/start.py": TABLE, "lab/one.py": "", "lab/two.py": ""}
    found = closure(lab(files), "lab.start", policy__words="two")
    assert {"lab/start.py", "lab/two.py"} <= found.files.keys()
    assert [part.target for part in found.parts["policy.words"]] == ["lab.two:Two"]
    assert "lab/one.py" not in found.files
    unread = closure(lab(files), "lab.start")
    assert not unread.parts and "lab/two.py" not in unread.files


def test_a_part_may_be_named_by_its_module(lab: Write) -> None:
    files = {"lab/__init__.py": "", "lab/start.py": TABLE, "mine/words.py": "from mine.more import x"}
    found = closure(lab(files | {"mine/more.py": "x = 1"}), "lab.start", policy__words="mine.words:Three")
    assert {"mine/words.py", "mine/more.py"} <= found.files.keys()


def test_modules_that_are_left_out_take_with_them_what_only_they_import(lab: Write) -> None:
    files = {
        "lab/__init__.py": "",
        "lab/start.py": "import lab.describes, lab.decides",
        "lab/describes.py": "import lab.both, lab.alone",
        "lab/decides.py": "import lab.both",
        "lab/both.py": "",
        "lab/alone.py": "",
    }
    found = lab(files).closure(["lab.start"], lambda parameter: (), {"lab.describes"})
    assert found.files.keys() == {"lab/start.py", "lab/decides.py", "lab/both.py"}


@pytest.fixture(scope="module")
def imports() -> grimp.ImportGraph:
    return grimp.build_graph("skillpress", "tasks", exclude_type_checking_imports=True, cache_dir=None)


@pytest.fixture(scope="module")
def code(repository: Path) -> Code:
    return Code(repository)


STAGES = (
    "prepare_tasks", "prepare_policy", "collect_rollouts", "filter_tasks", "project_skills",
    "fit_dictionary", "train_policy", "play_floors", "evaluate_policy", "report",
)  # fmt: skip
LAYERS = (
    "core", "skills", "rollouts", "models", "training", "experiment", "logs", "integrations", "evaluation",
)  # fmt: skip
LAZY = {"skillpress", *(f"skillpress.{layer}" for layer in LAYERS)}
"""Packages whose public names are imported on first use."""
NAMED_IN_TEXT = {
    "skillpress.reports.report", "skillpress.reports.viewer", "skillpress.environments.code_repair",
}  # fmt: skip
"""Modules that only a text names: the files beside them are read."""


@pytest.mark.heavy  # it imports the parts that it looks at, torch and the orchestrator among them
@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("table", registry.registries(), ids=lambda table: table.group)
def test_the_closure_of_every_stage_is_that_of_an_independent_import_graph(
    stage: str, table: registry.Registry, code: Code, imports: grimp.ImportGraph
) -> None:
    """grimp reads the imports; a name adds the import closure of its part's module."""
    for name in table:
        found = code.closure(
            [f"tasks.{stage}"], lambda parameter, n=name: [n] if parameter == table.parameter else []
        )
        assert found.modules - NAMED_IN_TEXT <= reference(imports, f"tasks.{stage}", table.parameter, name)
        assert reference(imports, f"tasks.{stage}", table.parameter, name) <= found.modules


def reference(imports: grimp.ImportGraph, start: str, parameter: str, name: str) -> set[str]:
    found, waiting = set(), {start}
    while waiting:
        module = waiting.pop()
        found.add(module)
        parts = module.split(".")
        around = {".".join(parts[:depth]) for depth in range(1, len(parts))} & imports.modules - LAZY
        waiting |= {package for package in around if imports.find_modules_directly_imported_by(package)}
        waiting |= imports.find_modules_directly_imported_by(module)
        for table in tables_used(module):
            if table.parameter == parameter and name in table.own:
                waiting.add(table.own[name].partition(":")[0])
        waiting -= found
    return found


@cache
def tables_used(module: str) -> list[registry.Registry]:
    """The registries that a module which imports ``lookup`` knows by name."""
    found = find_spec(module)
    assert found is not None and found.origin is not None
    text = Path(found.origin).read_text()
    places = (registry.__name__, "skillpress.core.sections")
    froms = [n for n in ast.walk(ast.parse(text)) if isinstance(n, ast.ImportFrom) and n.module in places]
    if not {"lookup", "ByName"} & {alias.name for node in froms for alias in node.names}:
        return []
    made = import_module(module)  # only now: modules for vLLM's processes cannot be imported without vLLM
    return [value for value in vars(made).values() if isinstance(value, registry.Registry)]
