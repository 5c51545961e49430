"""pytest's options ``--quick`` and ``--changed``, which choose test files by their imports.

``--quick``: files that import neither torch nor an orchestrator, directly or not, and start no process and no
browser. ``--changed``: files that import a file that differs from the branch ``main``, and those in the
folder that mirrors it, since registries find a part by its name alone. Both read the source and import
nothing.

They do not see dependencies at run time, such as a name in a registry or a page. If a test under ``--quick``
nevertheless imports something heavy or starts a process, it fails. The message says that it needs the marker
``heavy``, which excludes it.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.import_graph import ImportGraph

ROOT = Path(__file__).parents[2]
HEAVY = frozenset(
    {
        "torch",
        "deepspeed",
        "transformers",
        "datasets",
        "peft",
        "trl",
        "prefect",
        "dvc",
        "mlflow",
        "vllm",
    }
)
"""Imports that take seconds: models and orchestrators."""
STARTING = frozenset({"subprocess", "multiprocessing", "playwright"})
"""Modules with which a test starts processes."""


def test_files(root: Path) -> list[Path]:
    """All test files."""
    return sorted((root / "tests").rglob("test_*.py"))


def conftests(file: Path, root: Path) -> list[Path]:
    """The files whose fixtures a test sees."""
    return [
        folder / "conftest.py"
        for folder in file.parents
        if folder.is_relative_to(root / "tests") and (folder / "conftest.py").is_file()
    ]


def quick(root: Path) -> set[Path]:
    """Test files that import nothing heavy and start nothing."""
    graph = ImportGraph(root)
    return {file for file in test_files(root) if not _burden(graph, file)}


def changed(root: Path, files: Iterable[Path]) -> set[Path]:
    """Test files whose results may depend on these files.

    A Python file affects the tests that import it, and those in the folder that mirrors its own. Any other
    file affects the tests of its package, those of the documentation if it is in ``docs``, and those that
    mention its name, in their own file or in shared code.
    """
    graph, touched = ImportGraph(root), set(files)
    code = {file for file in touched if file.suffix == ".py"}
    rooms = {root / "tests" / file.relative_to(root).parent for file in touched if file.parent != root}
    names = {file.name for file in touched - code}
    found = set()
    for test in test_files(root):
        reached = graph.reached([test, *conftests(test, root)], functions=True)
        own = (file for file in graph.reached([test], functions=True) if file.is_relative_to(root / "tests"))
        if reached & code or test.parent in rooms or any(_says(file, names) for file in own):
            found.add(test)
    return found


def differing(root: Path, base: str = "main") -> set[Path]:
    """Files that differ from the branch ``base``, committed or not, and new files."""

    def git(*words: str) -> list[str]:
        done = subprocess.run(["git", *words], cwd=root, capture_output=True, text=True, check=False)
        if done.returncode:
            raise pytest.UsageError(f"--changed: git {' '.join(words)}: {done.stderr.strip()}")
        return done.stdout.splitlines()

    (start,) = git("merge-base", base, "HEAD")
    names = [*git("diff", "--name-only", start), *git("ls-files", "--others", "--exclude-standard")]
    return {root / name for name in names}


def _burden(graph: ImportGraph, file: Path) -> set[str]:
    """The reasons why a test file is slow: heavy modules, and modules that start processes, among all its
    imports.

    Imports within the library's functions do not count. Processes of conftest.py's fixtures count only for
    tests that use these fixtures.
    """
    own = {
        each for each in graph.reached([file], functions=True) if each.is_relative_to(graph.root / "tests")
    }
    used = {each for test in own for name in graph.imports(test) for each in graph.files(name.module)}
    library = graph.reached(used - own, functions=False)
    around = graph.reached(conftests(file, graph.root), functions=False)
    foreign = graph.foreign(own, functions=True) | graph.foreign(library, functions=False)
    return foreign & (HEAVY | STARTING) | graph.foreign(around, functions=False) & HEAVY


def _says(file: Path, names: set[str]) -> bool:
    text = file.read_text(encoding="utf-8") if names else ""
    return any(name in text for name in names)


CHOSEN = pytest.StashKey[set[Path]]()
STARTS = frozenset({"subprocess.Popen", "os.fork", "os.posix_spawn", "os.spawn"})
"""Python's audit events for new processes."""


class Lightness:
    """Fails a test that imports something heavy or starts a process, itself or in its fixtures."""

    def __init__(self) -> None:
        self._found: set[str] = set()
        sys.addaudithook(self._hear)

    def _hear(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event in STARTS:
            self._found.add(event)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_setup(self) -> Iterator[None]:
        self._found.clear()
        self._before = HEAVY & sys.modules.keys()
        return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self) -> Iterator[None]:
        done = yield
        found = self._found | (HEAVY & sys.modules.keys()) - self._before
        if found:
            pytest.fail(f"not quick ({', '.join(sorted(found))}): mark it pytest.mark.heavy", pytrace=False)
        return done


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("selection")
    group.addoption("--quick", action="store_true", help="tests that import nothing heavy and start nothing")
    group.addoption("--changed", action="store_true", help="tests that import what differs from main")


def pytest_configure(config: pytest.Config) -> None:
    handed = getattr(config, "workerinput", {}).get("chosen")
    if handed is not None:
        config.stash[CHOSEN] = {ROOT / name for name in handed}
    elif config.option.quick or config.option.changed:
        chosen = quick(ROOT) if config.option.quick else set(test_files(ROOT))
        if config.option.changed:
            chosen &= changed(ROOT, differing(ROOT))
        config.stash[CHOSEN] = chosen
    if config.option.quick:
        config.pluginmanager.register(Lightness(), "lightness")


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Spare xdist's workers a second search."""
    chosen = node.config.stash.get(CHOSEN, None)
    if chosen is not None:
        node.workerinput["chosen"] = [str(file.relative_to(ROOT)) for file in chosen]


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Ignore files that were not chosen, and folders without a chosen file, whose conftest.py need not be
    imported."""
    chosen = config.stash.get(CHOSEN, None)
    if chosen is None or collection_path in chosen:
        return None
    return True if not any(file.is_relative_to(collection_path) for file in chosen) else None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.option.quick:
        heavy = [item for item in items if item.get_closest_marker("heavy")]
        items[:] = [item for item in items if item not in heavy]
        config.hook.pytest_deselected(items=heavy)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    chosen = terminalreporter.config.stash.get(CHOSEN, None)
    if chosen is not None:
        terminalreporter.line(
            f"{len(chosen)} of {len(test_files(ROOT))} files of tests were chosen by imports"
        )


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """A change that no test depends on is not a failure."""
    if session.config.option.changed and session.exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED:
        session.exitstatus = pytest.ExitCode.OK
