"""Command lines suggest the name that was probably meant, and numbers name their range."""

from __future__ import annotations

import ast
from collections.abc import Callable
from pathlib import Path

import pytest

from skillpress.core.arguments import CommandParser, any_seed, output_file, output_folder, real, whole


def parser() -> CommandParser:
    made = CommandParser(prog="test")
    made.add_argument("--environment", choices=["alfworld", "countdown"])
    made.add_argument("--seed", type=any_seed)
    made.add_argument("--tasks", type=whole(1))
    made.add_argument("--temperature", type=real(above=0, at_most=2))
    return made


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--environmnet", "countdown"], "did you mean '--environment'?"),
        (["--env", "countdown"], "unrecognized arguments: --env countdown; did you mean '--environment'?"),
        (["--environment", "countdwon"], "did you mean 'countdown'?"),
        (["--cluster", "node0:6379", "--restarts", "5"], "error: --cluster: Ray clusters are no longer"),
        (["--seed", str(2**63)], f"is {2**63}; must be from 0 to {2**63 - 1}"),
        (["--seed", "9" * 5000], "is not a whole number; must be from 0 to"),
        (["--seed", "-1"], "is -1; must be from 0 to"),
        (["--seed", "1.5"], "'1.5' is not a whole number; must be from 0 to"),
        (["--tasks", "0"], "is 0; must be from 1 to 2147483647"),
        (["--temperature", "nan"], "is nan; must be a finite number, above 0 and at most 2"),
        (["--temperature", "inf"], "is inf; must be a finite number, above 0 and at most 2"),
        (["--temperature", "0"], "is 0; must be a finite number, above 0 and at most 2"),
        (["--temperature", "warm"], "'warm' is not a number; must be a finite number, above 0"),
    ],
)
def test_a_mistake_is_answered_with_what_was_meant_or_what_is_allowed(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        parser().parse_args(words)
    assert ended.value.code == 2
    error = capsys.readouterr().err
    assert said in error and len(error) < 700


def test_what_is_right_is_taken() -> None:
    words = ["--environment", "countdown", "--seed", str(2**63 - 1), "--tasks", "1", "--temperature", "1e-3"]
    chosen = parser().parse_args(words)
    assert (chosen.environment, chosen.seed, chosen.tasks) == ("countdown", 2**63 - 1, 1)
    assert chosen.temperature == 1e-3


def test_every_command_has_this_parser_and_no_number_is_without_a_range(repository: Path) -> None:
    found = []
    for folder in ("skillpress", "tasks", "flows"):
        for path in (repository / folder).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if not isinstance(node, ast.Call) or path.name == "arguments.py":
                    continue
                types = {ast.unparse(k.value) for k in node.keywords if k.arg == "type"}
                if types & {"int", "float"} or ast.unparse(node.func).endswith("ArgumentParser"):
                    found.append(f"{path.relative_to(repository)}:{node.lineno}")
    assert not found


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ["--name", "n", "params/x.yaml"],
            "params/x.yaml; did you mean --params params/x.yaml?",
        ),
        (["--name", "n", "a.yml", "seed=3"], "did you mean --params a.yml --set seed=3?"),
        (["--name", "n", "--params", "a.yaml", "b.yaml"], "did you mean --params b.yaml?"),
        (["params/x.yaml"], "required: --name; did you mean --params params/x.yaml?"),
        (["--params", "a.yaml"], "required: --name\n"),
    ],
)
def test_a_file_or_an_assignment_without_its_option_is_answered_with_the_option(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    made = CommandParser(prog="test")
    for option in ("--params", "--set"):
        made.add_argument(option, action="append")
    made.add_argument("--name", required=True)
    with pytest.raises(SystemExit):
        made.parse_args(words)
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("kind", "place", "said"),
    [
        (output_folder, "file", "file: cannot be a folder, since file is a file; name another"),
        (output_folder, "file/x/y", "file/x/y: cannot be a folder, since file is a file; name another"),
        (output_file, "file/x", "file: cannot be a folder, since file is a file; name another"),
        (output_file, "folder", "folder: is a folder; name a file"),
        (output_folder, "/proc/x/y", "/proc/x/y: cannot be written: /proc: "),
        (output_folder, "folder/new/x", ""),
        (output_file, "file", ""),
        (output_file, "folder/new/x", ""),
    ],
)
def test_an_output_that_cannot_be_written_is_refused_with_its_option_and_its_path(
    kind: Callable[[str], Path], place: str, said: str, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("")
    (tmp_path / "folder").mkdir()
    made = CommandParser(prog="test")
    made.add_argument("--output", type=kind)
    if said:
        with pytest.raises(SystemExit):
            made.parse_args(["--output", place])
        assert f"argument --output: {said}" in capsys.readouterr().err
    else:
        assert made.parse_args(["--output", place]).output == Path(place)
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["file", "folder"], "nothing is left"


def test_every_option_for_an_output_looks_at_its_path_before_any_work() -> None:
    """No output option of the console, the flows and the pages has a bare path as its type."""
    root = Path(__file__).parents[3]
    for file in [*root.glob("skillpress/**/*.py"), *root.glob("flows/*.py"), *root.glob("docs/**/*.py")]:
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
                named = node.args[0].value in ("--output", "--out", "--log", "--record")
                types = [ast.unparse(each.value) for each in node.keywords if each.arg == "type"]
                assert not named or types != ["Path"], f"{file}: {node.args[0].value}"
