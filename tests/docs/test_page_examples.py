"""Every example on every page is run, or checked as far as possible without a model, a server or an hour.

Python is run from the page, in order, and prints what the comments after its prints say. If a page has its
own test, that test checks it, and so does a test that a comment above a block names. YAML that says which
file of params/ it is must be an experiment's overlay. A command line must name a command, and options that it
has.
"""

from __future__ import annotations

import re
import shlex
from argparse import ArgumentParser
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import pytest
import yaml

from docs.build.command_line import MODULES, parser_of
from docs.build.markdown import Block, blocks, spans
from skillpress.cli.command import COMMANDS
from skillpress.experiment.params import check_params, merge, read_yaml
from tests.support.pages import NAMES, PAGES, ROOT

LEFT_TO = re.compile(r"run by (tests/\S+\.py)")
SAID = re.compile(r"^print\(.*\)  # (.+)$", re.MULTILINE)
OVERLAY = re.compile(r"# params/\w+\.yaml")
COMMAND = re.compile(r"^(?:\$ )?(?:\w+=\S+ )*(?:\.venv/bin/)?(skillpress|python -m|make)\b *(.*)$")
TARGETS = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
PYTHON_MODULES = {f"{name.removeprefix('python -m ')}": module for name, module in MODULES.items()} | {
    "skillpress.pipeline.reproduce": "skillpress.pipeline.reproduce.__main__"
}


def own_test(page: Path) -> bool:
    """Whether a test of this folder runs the page's examples."""
    return any(
        page.name in test.read_text()
        for test in Path(__file__).parent.glob("test_*.py")
        if test.name != Path(__file__).name
    )


@pytest.mark.heavy
@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_python_runs_and_says_what_its_comments_say(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "example"}
    for block in blocks(page.read_text()):
        if block.language != "python" or own_test(page):
            continue
        elsewhere = LEFT_TO.search(block.remark)
        if elsewhere:
            assert (ROOT / elsewhere[1]).is_file(), f"{page.name} leaves an example to {elsewhere[1]}"
            continue
        exec(compile(block.code, str(page), "exec"), names)
        said = SAID.findall(block.code)
        printed = capsys.readouterr().out.splitlines()
        assert not said or printed == said


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_yaml_is_read_and_overlays_are_experiments(page: Path) -> None:
    for block in blocks(page.read_text()):
        if block.language == "yaml":
            values = yaml.safe_load(block.code)
            if OVERLAY.match(block.code) and not own_test(page):
                check_params(merge(read_yaml(ROOT / "params.yaml"), values), source=page.name)


@pytest.mark.heavy
@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_command_lines_name_commands_and_options_that_there_are(page: Path) -> None:
    wrong = [line for line in command_lines(page.read_text()) if complaint(line)]
    assert not wrong, [(line, complaint(line)) for line in wrong]


def command_lines(text: str) -> Iterator[str]:
    """Each command on a page, on one line and without the text of comments."""
    in_blocks = [block.code for block in blocks(text) if is_shell(block)]
    indented = [
        line.strip() for line in text.splitlines() if line.startswith("    ") and COMMAND.match(line.strip())
    ]
    for part in (*in_blocks, *indented):
        for line in part.replace("\\\n", " ").splitlines():
            if COMMAND.match(line):
                yield line.split(" #")[0]
    for span in spans(text):
        if re.match(r"(skillpress|make) [a-z-]+( --[a-z-]+)*$", span):
            yield span


def is_shell(block: Block) -> bool:
    """Whether a block holds typed commands."""
    return block.language in ("", "bash", "sh", "shell", "console")


def complaint(line: str) -> str:
    """The error in a command line; empty if there is none."""
    match = COMMAND.match(line)
    assert match
    program, rest = match[1], shlex.split(match[2])
    if program == "make":
        unknown = [word for word in rest if "=" not in word and word not in TARGETS and word != "..."]
        return f"make has no target {', '.join(unknown)}" if unknown else ""
    name, *arguments = rest or [""]
    if program == "skillpress":
        if name not in COMMANDS and name not in ("--help", "COMMAND"):
            return f"there is no command {name}"
        return unknown_options(COMMANDS[name].module, arguments) if name in COMMANDS else ""
    if name in PYTHON_MODULES:
        return unknown_options(PYTHON_MODULES[name], arguments)
    return "" if find_spec(name) else f"there is no module {name}"


@cache
def parser(module: str) -> ArgumentParser:
    """The parser of a program."""
    return parser_of(module)


def unknown_options(module: str, arguments: list[str]) -> str:
    """Options that its parser does not know."""
    known = parser(module)._option_string_actions
    found = [word for word in arguments if word.startswith("--") and word.split("=")[0] not in known]
    return f"{module} has no {', '.join(found)}" if found else ""
