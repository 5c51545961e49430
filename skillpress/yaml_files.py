"""YAML as this project reads it: one loader for every file, and for values of the command line.

It follows YAML 1.2 where PyYAML's own loader surprises: ``1e-3`` is a number, and a date is a text (no
parameter is one, and JSON has none). A key that stands twice in a mapping is refused, since the later
one would silently win; so are sets, binary data and other values that JSON cannot hold. Every error names
the file and the line.
"""

from __future__ import annotations

import re
from collections.abc import Hashable
from pathlib import Path
from typing import Any

import yaml

from skillpress.errors import ParamsError


class YamlError(ParamsError):
    """A file or text is not YAML as it is read here; the message names the place and what would be right."""


_MERGE, _TIMESTAMP, _FLOAT = (f"tag:yaml.org,2002:{kind}" for kind in ("merge", "timestamp", "float"))
_EXPONENT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)[eE][-+]?[0-9]+$")
"""Numbers that YAML 1.2 knows and PyYAML takes for texts, such as 1e-3."""
_FIRST = list("-+.0123456789")
"""What such a number begins with."""


class _Loader(yaml.SafeLoader):
    """PyYAML's safe loader with the changes that the module names."""

    yaml_implicit_resolvers = {  # noqa: RUF012  as PyYAML has it
        first: [(tag, pattern) for tag, pattern in resolvers if tag != _TIMESTAMP]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }

    yaml_constructors = {  # noqa: RUF012
        tag: construct
        for tag, construct in yaml.SafeLoader.yaml_constructors.items()
        if tag is None or tag.rpartition(":")[2] in ("null", "bool", "int", "float", "str", "seq", "map")
    }

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        """A mapping, each of whose keys stands once."""
        lines: dict[Hashable, int] = {}
        for key_node, _ in node.value:
            if key_node.tag == _MERGE:
                continue
            key = self.construct_object(key_node, deep=True)
            if not isinstance(key, Hashable):
                continue  # which PyYAML refuses below
            if key in lines:
                raise yaml.constructor.ConstructorError(
                    problem=f"the key {key!r} stands in line {lines[key]} already; remove one of them",
                    problem_mark=key_node.start_mark,
                )
            lines[key] = key_node.start_mark.line + 1
        return super().construct_mapping(node, deep)


class _Dumper(yaml.SafeDumper):
    """Quotes the texts that the loader would take for numbers."""


for _class in (_Loader, _Dumper):
    _class.add_implicit_resolver(_FLOAT, _EXPONENT, _FIRST)


def parse_yaml(text: str, source: str) -> Any:
    """The value of a YAML text.

    Args:
        source: what the text is, for the message: a file, or an option.

    Raises:
        YamlError: it is not YAML, or a mapping has a key twice.
    """
    try:
        return yaml.load(text, _Loader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = f", line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        raise YamlError(f"{source}{place}: {_explained(error)}") from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        # ValueError: a number that Python cannot make, such as an integer of 5,000 digits.
        raise YamlError(f"{source}: not YAML: {' '.join(str(error).split())}") from error


def read_yaml_file(path: str | Path) -> Any:
    """The value of a YAML file.

    Raises:
        YamlError: it cannot be read, is not UTF-8 or not YAML, or a mapping has a key twice.
    """
    try:
        text = Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise YamlError(f"{path}: cannot be read: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise YamlError(f"{path}: byte {error.start} is not UTF-8; save the file as UTF-8") from error
    return parse_yaml(text, str(path))


def write_yaml(value: Any) -> str:
    """The text of a value, such that :func:`parse_yaml` reads the same value again."""
    return str(yaml.dump(value, Dumper=_Dumper, sort_keys=False))


def _explained(error: yaml.MarkedYAMLError) -> str:
    """What is wrong, and for a tab what would be right."""
    problem = error.problem or error.context or "not YAML"
    if r"'\t'" in problem:
        return "a tab, and YAML is indented with spaces; replace the tab by spaces"
    if isinstance(error, yaml.constructor.ConstructorError):
        return problem
    return f"not YAML: {', '.join(filter(None, (error.context, problem)))}"
