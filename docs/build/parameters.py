"""Parameters in words, from the docstrings of the sections' fields: the page, and params.yaml's comments.

``python -m docs.build.parameters`` writes the comments into params.yaml.
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml
from pydantic import AfterValidator, BaseModel
from pydantic.fields import FieldInfo

from skillpress.core.sections import ByName
from skillpress.core.storage import write_text
from skillpress.experiment.params import Params
from skillpress.experiment.params_mistakes import section_in
from skillpress.pipeline.settings import ROOT
from skillpress.training.algorithms.algorithm import Algorithm

LINE = re.compile(r"^(?P<indent> *)(?P<key>\w+):(?P<value>[^#]*)(?:#.*)?$")
COLUMN = 34
"""Where params.yaml's comments begin."""
SENTENCE = re.compile(r"(?<=\.) (?=[A-Z`])")
"""The space between two sentences of a docstring."""

HEAD = """# Parameters

Every key of [one file](../params.yaml), which is the whole default experiment. This page is made from that
file and from the classes that check it (`skillpress/experiment/params.py` names them), so it cannot say
anything else than they do. A file of [params/](../params) is laid over it and names only what it changes; a
section that gives another `name` replaces the one below whole.

Everything is checked before any work is done. An unknown key, a wrong type, a value out of range and a
combination that cannot work are refused, each with its path, its value and what is allowed.
"""


def page(root: Path) -> str:
    """The page, in Markdown."""
    written = dict(keys((root / "params.yaml").read_text(encoding="utf-8")))
    parts = [HEAD]
    parts.append(section("The experiment", Params, "", written))
    for name, field in Params.model_fields.items():
        if name not in BY_NAME and is_section(field):
            parts.append(section(f"`{name}`", field.annotation, name, written))
        elif name in BY_NAME:
            parts += [named(path, BY_NAME[path], written) for path in BY_NAME if path.split(".")[0] == name]
    return "\n".join(parts)


def by_name(model: type[BaseModel], prefix: str = "") -> dict[str, ByName]:
    """Path of each section of a class that chooses its own class by a name, to how it does."""
    return {
        prefix + key: part
        for key, field in model.model_fields.items()
        for part in field.metadata
        if isinstance(part, ByName)
    }


BY_NAME = by_name(Params) | by_name(Algorithm, "algorithm.")


def keys(text: str) -> Iterator[tuple[str, str]]:
    """The path of each line's key and its value as written; two empty texts for a line without a key."""
    above: list[tuple[int, str]] = []
    for line in text.splitlines():
        match = LINE.match(line)
        if match is None:
            yield "", ""
            continue
        depth = len(match["indent"])
        above = [(indent, key) for indent, key in above if indent < depth] + [(depth, match["key"])]
        yield ".".join(key for _, key in above), match["value"].strip()


def with_comments(text: str) -> str:
    """The text of params.yaml, in which every key has the first sentence of its field's docstring."""
    said = dict(comments(Params, yaml.safe_load(text)))
    lines = []
    for line, (path, value) in zip(text.splitlines(), keys(text), strict=True):
        if path:
            *above, key = path.split(".")
            line = f"{'  ' * len(above)}{key}: {value}".rstrip()
            line = f"{line:<{COLUMN - 2}}  # {said[path]}"
        lines.append(line)
    return "\n".join(lines) + "\n"


def comments(model: type[BaseModel], values: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, str]]:
    """The path and the comment of every key of a section, and of the sections inside it."""
    meanings = attribute_docs(model)
    for key, value in values.items():
        said = SENTENCE.split(meanings[key])[0].rstrip(".").replace("`", "")
        inside = section_in(model.model_fields[key], value)
        if inside is not None and isinstance(value, Mapping) and value:
            yield from comments(inside, value, f"{path}{key}.")
            if left_out := [other for other in inside.model_fields if other not in value]:
                said += f"; optional: {', '.join(left_out)}"
        yield path + key, said


def named(path: str, chosen: ByName, written: Mapping[str, str]) -> str:
    """A section whose ``name`` decides which keys it has."""
    default = written[f"{path}.name"]
    parts = [f"## `{path}`\n\n`{path}.name`: {attribute_docs(chosen.section(default))['name']}\n"]
    for name in chosen.registry:
        heading = f"{path}: `{name}`" + (" (the default)" if name == default else "")
        parts.append(section(heading, chosen.section(name), path, written if name == default else {}, 3))
    return "\n".join(parts)


def section(heading: str, model: Any, path: str, written: Mapping[str, str], level: int = 2) -> str:
    """The keys of one class as a table."""
    found = list(rows(model, path, written))
    if not found:
        return f"{'#' * level} {heading}\n\nIt has no keys of its own.\n"
    head = "| key | default | allowed | what it decides |\n|---|---|---|---|\n"
    return f"{'#' * level} {heading}\n\n{head}" + "\n".join(found) + "\n"


def rows(model: Any, path: str, written: Mapping[str, str], inside: str = "") -> Iterator[str]:
    """A row for each key of a class, and of the sections inside it, whose keys begin with ``inside``."""
    meanings = attribute_docs(model)
    for key, field in model.model_fields.items():
        where = f"{path}.{key}".lstrip(".")
        if where in BY_NAME or (key == "name" and not inside) or (model is Params and is_section(field)):
            continue
        value = written.get(where, "")
        default = value or ("" if field.is_required() else repr(field.get_default(call_default_factory=True)))
        if not is_section(field):
            cells = (
                f"`{inside}{key}`",
                f"`{default}`" if default else "",
                allowed(field, model, key),
                meanings[key],
            )
            yield "| " + " | ".join(cell.replace("|", r"\|") for cell in cells) + " |"
        if (held := section_in(field, None)) is not None:
            yield from rows(held, where, written, f"{inside}{key}.")


def is_section(field: FieldInfo) -> bool:
    """Whether a field is a section of keys."""
    return inspect.isclass(field.annotation) and issubclass(field.annotation, BaseModel)


def allowed(field: FieldInfo, model: type[BaseModel], key: str) -> str:
    """Type and range, or the names there are."""
    for part in field.metadata:
        if isinstance(part, AfterValidator) and "names" in inspect.getclosurevars(part.func).nonlocals:
            return " ".join(f"`{name}`" for name in inspect.getclosurevars(part.func).nonlocals["names"])
    schema = model.model_json_schema(by_alias=False)["properties"][key]
    return "; ".join(_allowed(option) for option in schema.get("anyOf", [schema]))


KINDS = {"integer": "whole number", "number": "number", "string": "text", "boolean": "`true` or `false`",
         "array": "list", "object": "mapping", "null": "`null`"}  # fmt: skip


def _allowed(schema: Mapping[str, Any]) -> str:
    if "enum" in schema:
        return " ".join(f"`{value}`" for value in schema["enum"])
    if "$ref" in schema:
        return "the keys below"
    bounds = [
        f"{sign} {schema[word]}"
        for word, sign in (
            ("minimum", "≥"),
            ("exclusiveMinimum", ">"),
            ("maximum", "≤"),
            ("exclusiveMaximum", "<"),
        )
        if word in schema
    ]
    if schema.get("type") == "array" and "minItems" in schema:
        least = schema["minItems"]
        bounds = [f"of {least}" if schema.get("maxItems") == least else f"of at least {least}"]
    return " ".join([KINDS[schema["type"]], ", ".join(bounds)]).strip()


def attribute_docs(model: type[BaseModel]) -> dict[str, str]:
    """What a class and those above it say below each field, in one line."""
    found: dict[str, str] = {}
    for above in reversed(model.__mro__):
        if issubclass(above, BaseModel) and above is not BaseModel:
            (body,) = (n for n in ast.walk(ast.parse(inspect.getsource(inspect.getmodule(above))))
                       if isinstance(n, ast.ClassDef) and n.name == above.__name__)  # fmt: skip
            for field, text in zip(body.body, body.body[1:], strict=False):
                if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and _is_text(text):
                    found[field.target.id] = " ".join(text.value.value.split()).replace("``", "`")
    return found


def _is_text(node: ast.stmt) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


if __name__ == "__main__":
    write_text(ROOT / "params.yaml", with_comments((ROOT / "params.yaml").read_text(encoding="utf-8")))
    sys.exit(0)
