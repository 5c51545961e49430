"""Pages that describe the code agree with it."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from importlib import import_module
from xml.etree import ElementTree

import pytest

from docs.build import api
from docs.build.command_line import options, parser_of
from docs.build.command_line import page as command_page
from docs.build.markdown import links
from docs.build.parameters import SENTENCE, keys, with_comments
from docs.build.parameters import page as parameters_page
from docs.build.sources import generated
from docs.build.variables import read_by_code
from docs.figures import FIGURES
from skillpress.cli.command import COMMANDS
from skillpress.core import registry
from tests.support.pages import ROOT

pytestmark = pytest.mark.heavy  # commands and registries are asked for all that they name
METHODS = (ROOT / "docs" / "methods.md").read_text()
VARIABLES = (ROOT / "docs" / "environment_variables.md").read_text()
MESSAGES = re.findall(r"^> `(.+)`$", (ROOT / "docs" / "troubleshooting.md").read_text(), re.MULTILINE)
COMPARISON = (ROOT / "docs" / "comparison.md").read_text()


@pytest.mark.parametrize(
    ("key", "table"),
    [
        ("algorithm.name", registry.ALGORITHMS),
        ("algorithm.select.name", registry.SELECTIONS),
        ("reward.shaping", registry.SHAPINGS),
        ("skills.search", registry.SEARCHES),
        ("skills.corpus", registry.CORPORA),
        ("skills.dictionaries", registry.DICTIONARIES),
        ("skills.closure", registry.CLOSURES),
        ("policy.state_update", registry.STATE_UPDATES),
        ("experience.name", registry.EXPERIENCES),
        ("skills.library.retrieval", registry.RETRIEVALS),
    ],
)
def test_the_page_of_methods_has_every_one_and_its_file(key: str, table: registry.Registry) -> None:
    section = METHODS.split(f"(`{key}`)\n")[1].split("\n## ")[0]
    listed = re.findall(r"^\| `(\w+)` \|.*\| `(\S+)` \|$", section, re.MULTILINE)
    files = {name: f"{where.partition(':')[0].replace('.', '/')}.py" for name, where in table.items()}
    assert dict(listed) == files and len(listed) == len(files)


def test_every_file_of_the_page_of_methods_is_there() -> None:
    assert all((ROOT / file).is_file() for file in re.findall(r"`(skillpress/\S+\.py)`", METHODS))


def test_the_page_of_commands_has_every_command_and_every_target() -> None:
    page = (ROOT / "docs" / "commands.md").read_text()
    commands = set(re.findall(r"^\| `skillpress ([\w-]+)", page, re.MULTILINE))
    assert commands == set(COMMANDS)
    (targets,) = re.findall(r"^\.PHONY: (.+)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    rows = re.findall(r"^\| (`make .+?) \| ", page, re.MULTILINE)
    assert set(re.findall(r"`make ([\w-]+)`", " ".join(rows))) == set(targets.split())


def test_the_index_of_the_library_says_what_each_module_is_for() -> None:
    listed = re.findall(r"^- \[`(.+)`\]\(api/\1\.md\): .+$", api.pages()["api.md"], re.MULTILINE)
    assert listed == [module for modules in api.MODULES.values() for module in modules]


def test_everything_that_a_page_of_the_library_shows_says_what_it_is() -> None:
    for module in (import_module(name) for names in api.MODULES.values() for name in names):
        gathered = getattr(module, "__all__", ())
        own = (
            name
            for name, thing in vars(module).items()
            if not name.startswith("_") and getattr(thing, "__module__", "") == module.__name__
        )
        for name in gathered or own:
            thing = getattr(module, name)
            documented = inspect.isclass(thing) or inspect.isroutine(thing)
            assert not documented or inspect.getdoc(thing), f"{module.__name__}.{name}"


def test_no_page_that_is_made_from_the_code_calls_a_link_by_the_name_of_a_file() -> None:
    for name, text in generated(ROOT).items():
        called = [match["text"].strip("`") for match in links(text)]
        assert not [text for text in called if re.fullmatch(r"[\w.*/-]+\.(md|yaml|py|json)", text)], name


def test_the_page_of_variables_has_all_that_the_code_reads() -> None:
    listed = set(re.findall(r"`([A-Z][A-Z_]+)`", VARIABLES))
    settings = set(re.findall(r"^(\w+) \?=", (ROOT / "infra" / "settings.env").read_text(), re.MULTILINE))
    make = set(re.findall(r"^([A-Z_]+) \?=", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert set(read_by_code(ROOT)) | settings | make <= listed


def test_the_page_of_variables_has_none_that_nothing_knows() -> None:
    files = [
        *(ROOT / "infra").rglob("*"),
        ROOT / "Makefile",
        *(ROOT / "docs").glob("e*.md"),
        *(ROOT / "docs").glob("s*.md"),
    ]
    files += [
        path
        for folder in ("skillpress", "tasks", "flows", "benchmarks", "tests")
        for path in (ROOT / folder).rglob("*.py")
    ]
    known = "\n".join(
        path.read_text() for path in files if path.is_file() and path.name != "environment_variables.md"
    )
    listed = set(re.findall(r"^\| (`[A-Z].*?) \|", VARIABLES, re.MULTILINE))
    names = {name for cell in listed for name in re.findall(r"`(\w+)`", cell)}
    assert not [name for name in names if not re.search(rf"\b{name}\b", known)]


def texts() -> Iterator[str]:
    """Every text of the program, with … for every inserted value."""
    for folder in ("skillpress", "tasks", "flows"):
        for path in (ROOT / folder).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.JoinedStr):
                    yield "".join(
                        part.value if isinstance(part, ast.Constant) else "…" for part in node.values
                    )
                elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                    yield node.value


def test_every_message_of_the_troubleshooting_page_is_one_of_the_program() -> None:
    said = "\n".join(texts())
    assert len(MESSAGES) > 30
    assert not [message for message in MESSAGES if message not in said]


def test_every_entry_of_the_comparison_about_others_has_a_source_or_says_that_none_was_found() -> None:
    rows = re.findall(r"^\| ([^|]+) \|(?: [^|]*\|){7}$", COMPARISON, re.MULTILINE)
    assert len(rows) > 15
    for row in re.findall(r"^\|(?:[^|]*\|){8}$", COMPARISON, re.MULTILINE):
        name, _, *others = [cell.strip() for cell in row.strip("|").split("|")]
        if name and not name.startswith("-"):
            assert all("](" in cell or "][" in cell or cell == "not found" for cell in others), name


def test_every_colour_of_a_figure_has_a_shade_for_dark_pages() -> None:
    for file in (ROOT / "docs" / "figures").glob("*.svg"):
        text = file.read_text(encoding="utf-8")
        style, _, drawn = text.partition("</style>")
        colors = set(re.findall(r"(?:fill|stroke)=\"#[0-9a-f]{6}\"", drawn))
        assert [color for color in colors if f"[{color}]" not in style] == [], file.name


@pytest.mark.parametrize("name", FIGURES)
def test_a_figure_is_what_its_code_draws(name: str) -> None:
    kept = (ROOT / "docs" / "figures" / f"{name}.svg").read_text()
    assert kept == FIGURES[name](), "draw it anew: python -m docs.figures"
    drawn = ElementTree.fromstring(kept)
    assert drawn.get("aria-label"), "those who cannot see it are told what it shows"


def test_the_page_of_parameters_has_every_key_with_its_value() -> None:
    shown = parameters_page(ROOT)
    for path, value in keys((ROOT / "params.yaml").read_text()):
        key = path.rpartition(".")[2]
        assert key == "name" or not value or f"| `{key}` | `{value}` |" in shown, path
    for table in (registry.ENVIRONMENTS, registry.ENGINES, registry.ALGORITHMS, registry.SELECTIONS):
        assert all(f": `{name}`" in shown for name in table)


def test_the_comments_of_the_parameters_are_the_first_sentences_of_their_fields() -> None:
    text = (ROOT / "params.yaml").read_text()
    assert with_comments(text) == text, "run python -m docs.build.parameters"
    without = "".join(line.partition(" #")[0].rstrip() + "\n" for line in text.splitlines())
    assert with_comments(without) == text
    assert max(map(len, text.splitlines())) <= 120


def test_every_field_of_every_section_has_a_docstring_of_at_most_two_sentences() -> None:
    files = (ROOT / "skillpress").rglob("*.py")
    nodes = [node for file in files for node in ast.walk(ast.parse(file.read_text()))]
    classes = [node for node in nodes if isinstance(node, ast.ClassDef)]
    sections = {"Section"}
    while more := {one.name for one in classes if sections & set(map(ast.unparse, one.bases))} - sections:
        sections |= more
    said = {}
    for one in (one for one in classes if one.name in sections):
        for field, below in zip(one.body, [*one.body[1:], None], strict=True):
            if isinstance(field, ast.AnnAssign) and "ClassVar" not in ast.unparse(field.annotation):
                text = below.value.value if isinstance(below, ast.Expr) else ""
                said[f"{one.name}.{ast.unparse(field.target)}"] = " ".join(text.split())
    assert len(said) > 200
    assert [field for field, text in said.items() if not text or len(SENTENCE.split(text)) > 2] == []


def test_the_page_of_the_command_line_has_every_command_with_every_option() -> None:
    shown = command_page()
    for name, command in COMMANDS.items():
        section = shown.split(f"## `skillpress {name}`\n")[1].split("\n## ")[0]
        for action in options(parser_of(command.module)):
            assert all(option in section for option in action.option_strings)
