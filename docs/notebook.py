"""``python -m docs.notebook``: run the cells of docs/notebook.ipynb in order and store what they show."""

from __future__ import annotations

import ast
import json
import sys
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

NOTEBOOK = Path(__file__).with_suffix(".ipynb")


def read() -> dict[str, Any]:
    """The notebook, as JSON values."""
    found: dict[str, Any] = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
    return found


def code_cells(notebook: dict[str, Any]) -> list[dict[str, Any]]:
    """Its cells of code, in order."""
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


def outputs(cell: dict[str, Any], names: dict[str, object], count: int) -> list[dict[str, Any]]:
    """What a cell shows: the printed text, and the value of its last line.

    Args:
        names: the names that earlier cells defined; the cell adds its own.
        count: its number among the cells of code, from 1.
    """
    tree, printed, value = ast.parse("".join(cell["source"])), StringIO(), None
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    with redirect_stdout(printed):
        exec(compile(tree, f"cell {count}", "exec"), names)
        if last is not None:
            value = eval(compile(ast.Expression(last.value), f"cell {count}", "eval"), names)
    found: list[dict[str, Any]] = []
    text = [line for line in printed.getvalue().splitlines(keepends=True) if line.strip()]
    if text:  # blank lines come from the progress bars of libraries
        found.append({"name": "stdout", "output_type": "stream", "text": text})
    if value is not None:
        data = {"text/plain": repr(value).splitlines(keepends=True)}
        found.append(
            {"data": data, "execution_count": count, "metadata": {}, "output_type": "execute_result"}
        )
    return found


def main() -> int:
    """The command; returns the exit code."""
    notebook, names = read(), {"__name__": "__main__"}
    for count, cell in enumerate(code_cells(notebook), 1):
        cell |= {"execution_count": count, "outputs": outputs(cell, names, count)}
    NOTEBOOK.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
