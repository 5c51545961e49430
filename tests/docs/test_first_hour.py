"""docs/start.md is walked, README.md says the same, and docs/notebook.ipynb shows what its cells show."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest
import yaml

from docs.build.markdown import blocks
from docs.notebook import code_cells, outputs, read
from skillpress.cli.command import main
from tests.support.pages import ROOT

pytestmark = pytest.mark.heavy
START, README = ((ROOT / page).read_text(encoding="utf-8") for page in ("docs/start.md", "README.md"))
MOST_WORDS = 700
NUMBER = re.compile(r"[-+]?\d[\d.]*")


def block(start: str, page: str = START) -> str:
    """The only example of a page that begins like this."""
    (found,) = (each.code for each in blocks(page) if each.code.startswith(start))
    return found


def said(text: str) -> list[str]:
    """The words of an output. Figures of a training are left out: another kind of processor rounds
    differently."""
    return NUMBER.sub("", re.sub(r"[─┌┬┐╞╪╡└┴┘]|\.\.\.|…", "", text)).split()


def test_the_first_page_is_short() -> None:
    assert len(README.split()) <= MOST_WORDS


def test_ten_lines_of_python_print_what_their_comments_say(capsys: pytest.CaptureFixture[str]) -> None:
    first, second = (each.code for each in blocks(README) if each.language == "python")
    lines = [line for line in (first + second).splitlines() if line]
    assert len(lines) <= 10
    names: dict[str, object] = {}
    exec(first, names)
    (comment,) = re.findall(r"^print\(.*\)  # (.+)$", first, re.MULTILINE)
    assert capsys.readouterr().out == f"{comment}\n"
    exec(second, names)
    rates = (line for line in capsys.readouterr().out.splitlines() if "%" in line)
    players = [line.split()[0] for line in rates]
    assert players == ["explorer", "start", "trained"]


@pytest.mark.slow
def test_an_environment_in_one_file_is_trained_in_and_checked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    program = block("# walk.py")
    (tmp_path / "walk.py").write_text(program)
    done = subprocess.run(
        [sys.executable, "walk.py"], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=500,
        env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    assert "Overriding environment" not in done.stderr
    rates = [float(line.split()[1].rstrip("%")) for line in done.stdout.splitlines()[-3:]]
    assert rates[0] < 50 < 80 < min(rates[1:])
    assert said("\n".join(done.stdout.splitlines()[-3:])) == said(block("explorer 26"))
    assert {path.name for path in tmp_path.iterdir()} <= {"walk.py", "__pycache__"}

    (guarded,) = (node for node in ast.walk(ast.parse(program)) if is_section(node))
    section = eval(compile(ast.Expression(guarded), "walk.py", "eval"), {"STEP": {"left": -1, "right": 1}})
    overlay = {"environment": section, "imitation": {"demonstrations": 200}, "sampling": {"slots": 64}}
    (tmp_path / "walk.yaml").write_text(yaml.safe_dump(overlay))
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    assert main(["check", "--params", "walk.yaml", "--tasks", "8"]) == 0
    assert "ok" in capsys.readouterr().out


def is_section(node: ast.AST) -> bool:
    return isinstance(node, ast.Dict) and any(
        isinstance(key, ast.Constant) and key.value == "oracle" for key in node.keys
    )


def test_a_log_of_ones_own_is_read_as_both_pages_say(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    exec(compile(block("# my_log.py"), "my_log.py", "exec"), {"__name__": "example"})
    assert (
        block("skillpress skills") == block("skillpress skills", README) == "skillpress skills my_log.jsonl\n"
    )
    assert main(["skills", "my_log.jsonl"]) == 0
    told = capsys.readouterr()
    assert told.out + told.err == block("read: ") == block("read: ", README)
    contrasts = pl.read_csv("results/skills/contrasts.csv")
    (with_reproduce,) = contrasts.filter(pl.col("phrase").str.contains("reproduce")).rows()
    assert [f"{100 * share:.0f}%" for share in with_reproduce[2:4]] == ["64%", "11%"]
    for page in (START, README):
        assert "64% of the successes" in page and "11% of the failures" in page


@pytest.mark.slow
def test_the_notebook_shows_what_its_cells_show() -> None:
    names: dict[str, object] = {"__name__": "__main__"}
    for count, cell in enumerate(code_cells(read()), 1):
        kept, shown = cell["outputs"], outputs(cell, names, count)
        assert [each["output_type"] for each in kept] == [each["output_type"] for each in shown]
        for before, now in zip(kept, shown, strict=True):
            texts = ["".join(each.get("text") or each["data"]["text/plain"]) for each in (before, now)]
            assert said(texts[0]) == said(texts[1])
        assert cell["execution_count"] == count
    start, after = (names["trained"].evaluate(player).pass_at_1 for player in ("start", "trained"))  # type: ignore[attr-defined]
    assert after.mean > start.mean, "what the page shows is that success rises"
