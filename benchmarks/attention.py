"""What a reader must learn, counted: lines, words, names with several meanings, and the files that tell GRPO.

    python -m benchmarks.attention

It prints JSON and takes a second. No number fails a check; a change that raises one says what it bought.

- ``lines``: of Python, with comments and empty lines, in files that git knows.
- ``names_defined_in_several_files``: public classes of the library. Functions are left out: each
  stage has a ``main``, and each reader of logs a ``read``.
- ``files_of_grpo``: GRPO's module and what it imports of ``algorithms``, directly or through one of these;
  imports for type checkers are left out.
- ``words_of_documentation``: of ``docs/*.md`` and README.md.
"""

from __future__ import annotations

import ast
import json
import subprocess
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
LIBRARY = ("skillpress", "tasks", "flows")
ALGORITHMS = "skillpress.training.algorithms"


def files(*paths: str) -> list[Path]:
    """The files of these paths that git knows."""
    listed = subprocess.run(["git", "ls-files", "-z", *paths], cwd=ROOT, capture_output=True, check=True)
    return [ROOT / name for name in listed.stdout.decode().split("\0") if name and (ROOT / name).is_file()]


def lines(*folders: str) -> int:
    """Lines of Python in these folders."""
    return sum(len(path.read_text().splitlines()) for path in files(*folders) if path.suffix == ".py")


def words(*paths: str) -> int:
    """Words of Markdown, as ``wc`` counts them."""
    return sum(len(path.read_text().split()) for path in files(*paths))


def ambiguous_names() -> dict[str, int]:
    """Public class to the number of files of the library that define it, if there are several."""
    found: dict[str, set[Path]] = defaultdict(set)
    for path in files(*LIBRARY):
        if path.suffix == ".py":
            for node in ast.parse(path.read_text()).body:
                if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                    found[node.name].add(path)
    return {name: len(places) for name, places in sorted(found.items()) if len(places) > 1}


def imported(tree: ast.AST) -> Iterator[str]:
    """The modules that run when a module is imported or used."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            continue
        if isinstance(node, ast.ImportFrom):
            yield str(node.module)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        else:
            yield from imported(node)


def closure(module: str, within: str) -> list[str]:
    """A module, and the modules of a package that it imports, directly or through others."""
    found, waiting = [], [module]
    while waiting:
        each = waiting.pop()
        path = ROOT / f"{each.replace('.', '/')}.py"
        if each not in found and each.startswith(within) and path.is_file():
            found.append(each)
            waiting += imported(ast.parse(path.read_text()))
    return sorted(found)


def main() -> None:
    """Print the figures."""
    names, grpo = ambiguous_names(), closure(f"{ALGORITHMS}.grpo", ALGORITHMS)
    figures = {
        "lines": lines(*LIBRARY),
        "lines_of_tests": lines("tests"),
        "lines_of_studies": lines("studies"),
        "names_defined_in_several_files": len(names),
        "files_of_grpo": len(grpo),
        "lines_of_grpo": lines(*(f"{module.replace('.', '/')}.py" for module in grpo)),
        "words_of_documentation": words("docs/*.md", "README.md"),
    }
    print(json.dumps(figures, indent=1))


if __name__ == "__main__":
    main()
