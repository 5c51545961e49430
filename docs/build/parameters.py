"""The page of parameters: params.yaml's keys, values and comments, with what the classes allow."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, get_args

from pydantic import AfterValidator, BaseModel
from pydantic.fields import FieldInfo

from skillpress.core.sections import ByName
from skillpress.experiment.params import Params
from skillpress.training.algorithms.algorithm import Algorithm

LINE = re.compile(r"^(?P<indent> *)(?P<key>\w+):(?P<value>[^#]*)(?:#\s*(?P<comment>.*))?$")

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
    written: dict[str, tuple[str, str]] = {}
    for overlay in sorted((root / "params").glob("*.yaml")):
        written |= {key: ("", comment) for key, (_, comment) in params_file(overlay).items() if comment}
    written |= params_file(root / "params.yaml")
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


def params_file(path: Path) -> dict[str, tuple[str, str]]:
    """Path of a key to its value as written and its comment."""
    found: dict[str, tuple[str, str]] = {}
    above: list[tuple[int, str]] = []
    for line in path.read_text(encoding="utf-8").splitlines():
        match = LINE.match(line)
        if match is None:
            continue
        depth = len(match["indent"])
        above = [(indent, key) for indent, key in above if indent < depth] + [(depth, match["key"])]
        found[".".join(key for _, key in above)] = (match["value"].strip(), (match["comment"] or "").strip())
    return found


def named(path: str, chosen: ByName, written: Mapping[str, tuple[str, str]]) -> str:
    """A section whose ``name`` decides which keys it has."""
    said = written[f"{path}.name"][1] or written[path][1]
    parts = [f"## `{path}`\n\n`{path}.name`: {said}.\n"]
    for name in chosen.registry:
        model = chosen.section(name)
        default = name == written[f"{path}.name"][0]
        values = written if default else {key: ("", comment) for key, (_, comment) in written.items()}
        parts.append(
            section(f"{path}: `{name}`" + (" (the default)" if default else ""), model, path, values, 3)
        )
    return "\n".join(parts)


def section(
    heading: str, model: Any, path: str, written: Mapping[str, tuple[str, str]], level: int = 2
) -> str:
    """The keys of one class as a table."""
    meanings = attribute_docs(model)
    rows = []
    for key, field in model.model_fields.items():
        where = f"{path}.{key}".lstrip(".")
        if key == "name" or is_section(field) or where in BY_NAME:
            continue
        value, comment = written.get(where, ("", ""))
        default = value or ("" if field.is_required() else repr(field.get_default(call_default_factory=True)))
        cells = (
            f"`{key}`",
            f"`{default}`" if default else "",
            allowed(field, model, key),
            meaning(comment, meanings.get(key, "")),
        )
        rows.append("| " + " | ".join(cell.replace("|", r"\|") for cell in cells) + " |")
    if not rows:
        return f"{'#' * level} {heading}\n\nIt has no keys of its own.\n"
    head = "| key | default | allowed | what it decides |\n|---|---|---|---|\n"
    return f"{'#' * level} {heading}\n\n{head}" + "\n".join(rows) + "\n"


def meaning(comment: str, documented: str) -> str:
    """What the class says of a key where it says more than the comment in params.yaml."""
    return documented if len(documented) > len(comment) else comment


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
        return "`{" + ", ".join(_keys_of(schema["$ref"])) + "}`"
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
        bounds = [f"of {schema['minItems']}"]
    return " ".join([KINDS[schema["type"]], ", ".join(bounds)]).strip()


def _keys_of(reference: str) -> Iterator[str]:
    """The keys of a section that may be left out, such as ``training.lora``."""
    name = reference.rsplit("/", 1)[-1]
    for field in Params.model_fields.values():
        for inner in getattr(field.annotation, "model_fields", {}).values():
            for option in (inner.annotation, *get_args(inner.annotation)):
                if getattr(option, "__name__", "") == name:
                    yield from option.model_fields
                    return


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
