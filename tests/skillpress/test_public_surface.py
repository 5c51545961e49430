"""docs/public.md, the names that packages give out, and what importing them loads."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import skillpress

PAGE = (Path(__file__).parents[2] / "docs" / "public.md").read_text()
EVERYDAY = dict(
    re.findall(r"^\| `(\w+)` \| [^|]+ \| ?(.*?) ?\|$", PAGE.split("## For everyday use")[1], re.MULTILINE)
)
"""Name to its layer."""
LAYERS = {
    layer: re.findall(r"`(\w+)`", names)
    for layer, names in re.findall(r"^\| `(skillpress\.\w+)` \| [^|]+ \| (.*) \|$", PAGE, re.MULTILINE)
}
LAZY = ["skillpress", *(layer for layer in LAYERS if layer != "skillpress.environments")]
HEAVY = ("torch", "transformers", "deepspeed", "dvc", "mlflow", "prefect", "plotly", "datasets")


def test_the_page_lists_what_the_package_gives_out() -> None:
    assert sorted(EVERYDAY) == sorted(set(skillpress.__all__) - {"__version__"})


@pytest.mark.parametrize("layer", LAYERS)
def test_the_page_lists_what_a_layer_gives_out(layer: str) -> None:
    assert LAYERS[layer] == import_module(layer).__all__


@pytest.mark.parametrize("package", LAZY)
def test_every_public_name_is_the_one_of_the_module_that_type_checkers_see(package: str) -> None:
    module = import_module(package)
    tree = ast.parse(Path(module.__file__ or "").read_text())
    (checked,) = (node for node in tree.body if isinstance(node, ast.If))
    seen = {
        alias.name: statement.module
        for statement in checked.body
        if isinstance(statement, ast.ImportFrom)
        for alias in statement.names
    }
    assert seen.keys() == {*module.__all__} - {"__version__"}
    for name, where in seen.items():
        assert getattr(module, name) is getattr(import_module(where or ""), name)


def test_a_name_that_is_not_there_is_refused_and_the_names_can_be_listed() -> None:
    with pytest.raises(AttributeError, match="'skillpress' has no attribute 'fitt'"):
        skillpress.fitt  # noqa: B018
    assert set(skillpress.__all__) <= set(dir(skillpress))


def test_neither_the_package_nor_a_name_of_the_base_layer_loads_torch() -> None:
    base = sorted(name for name, layer in EVERYDAY.items() if layer != "`[train]`")
    program = (
        "import sys, skillpress\n"
        "assert set(sys.modules).isdisjoint({'numpy', 'polars', 'pydantic'}), 'the package loads more'\n"
        f"for name in {base}:\n"
        "    getattr(skillpress, name)\n"
        f"    loaded = sorted(set({HEAVY}) & set(sys.modules))\n"
        "    assert not loaded, f'{name} loads {loaded}'\n"
    )
    assert {"fit", "evaluate", "read_log", "read_rollouts", "Sandbox"} <= set(base)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
