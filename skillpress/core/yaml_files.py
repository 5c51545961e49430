"""YAML as this project reads it: one loader for every file and for values of the command line.

It follows YAML 1.2 where PyYAML's own loader surprises: ``1e-3`` is a number, ``010`` is ten, and ``1:30``
and a date are texts (no parameter is a date, and JSON has none). It refuses a key that occurs twice in a
mapping, since the later one would silently win. It also refuses sets, binary data and other values that JSON
cannot hold. Every error names the file and the line.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Sequence
from pathlib import Path
from typing import Any

import yaml

from skillpress.core.errors import ParamsError


class YamlError(ParamsError):
    """A file or text is not valid YAML here; the message names the place and what would be right."""


_TAG = "tag:yaml.org,2002:"
_MERGE, _FLOAT, _INT = f"{_TAG}merge", f"{_TAG}float", f"{_TAG}int"
_TEXTS = frozenset(f"{_TAG}{kind}" for kind in ("timestamp", "value", "int", "float"))
"""Types that PyYAML recognises in plain texts and this loader does not, or by other patterns."""
_WHOLE = re.compile(r"[-+]?([0-9][0-9_]*|0b[01]+|0o[0-7]+|0x[0-9a-fA-F]+)$")
_REAL = re.compile(
    r"[-+]?(\.[0-9]+|[0-9][0-9_]*\.[0-9_]*)([eE][-+]?[0-9]+)?$|[-+]?[0-9][0-9_]*[eE][-+]?[0-9]+$"
    r"|[-+]?\.(inf|Inf|INF)$|\.(nan|NaN|NAN)$"
)
_NO_CONSTRUCTOR = re.compile(r"could not determine a constructor for the tag '(.*)'")
_FIRST = list("-+.0123456789")
"""The characters that a number may begin with."""
DEEPEST, MOST_VALUES = 100, 1_000_000
"""The deepest nesting and the most values of a file. An alias counts as all that it repeats: ten lines of
text can give any number of values, or a value that contains itself."""

MOST_MERGED = 10_000
"""The most keys that one mapping may merge from others, each counted as often as it occurs."""


class _Loader(yaml.SafeLoader):
    """PyYAML's safe loader with the changes that the module's docstring lists."""

    yaml_implicit_resolvers = {  # noqa: RUF012  as PyYAML has it
        first: [(tag, pattern) for tag, pattern in resolvers if tag not in _TEXTS]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }

    yaml_constructors = {  # noqa: RUF012
        tag: construct
        for tag, construct in yaml.SafeLoader.yaml_constructors.items()
        if tag is None or tag.rpartition(":")[2] in ("null", "bool", "int", "float", "str", "seq", "map")
    }

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        """A mapping in which each key occurs once."""
        if not isinstance(node, yaml.MappingNode):
            return super().construct_mapping(node, deep)  # raises PyYAML's error
        lines: dict[Hashable, int] = {}
        for key_node, _ in node.value:
            if key_node.tag == _MERGE:
                continue
            key = self.construct_object(key_node, deep=True)
            if not isinstance(key, Hashable):
                continue  # PyYAML refuses it below
            if key in lines:
                raise yaml.constructor.ConstructorError(
                    problem=f"the key {key!r} stands in line {lines[key]} already; remove one of them",
                    problem_mark=key_node.start_mark,
                )
            lines[key] = key_node.start_mark.line + 1
        return super().construct_mapping(node, deep)

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        """Merge (``<<``) as PyYAML does, up to a number of keys: merges of merges multiply them."""
        super().flatten_mapping(node)
        if len(node.value) > MOST_MERGED:
            raise _refused(node, f"merges {len(node.value):,} keys, at most {MOST_MERGED:,} are read")

    def construct_number(self, node: yaml.ScalarNode) -> int | float:
        """A number, even if only a tag says that it is one."""
        text = str(self.construct_scalar(node)).lower().replace("_", "")
        try:
            if node.tag == _INT:
                whole = int(text, 0 if text.lstrip("-+")[:2] in ("0b", "0o", "0x") else 10)
                str(whole)  # fails beyond 4,300 digits, which no message could show
                return whole
            return float(text.replace(".inf", "inf").replace(".nan", "nan"))
        except ValueError:
            kind = "whole number" if node.tag == _INT else "number"
            raise _refused(node, f"{str(node.value)[:40]!r} is not a {kind} that can be read") from None

    def construct_yes_or_no(self, node: yaml.ScalarNode) -> bool:
        """True or false."""
        text = str(self.construct_scalar(node))
        if text.lower() not in self.bool_values:
            raise _refused(node, f"{text[:40]!r} is neither true nor false")
        return self.bool_values[text.lower()]


def _refused(node: yaml.Node, why: str) -> yaml.constructor.ConstructorError:
    return yaml.constructor.ConstructorError(problem=why, problem_mark=node.start_mark)


class _Dumper(yaml.SafeDumper):
    """Quotes texts that the loader would read as numbers."""


for _class in (_Loader, _Dumper):
    _class.add_implicit_resolver(_INT, _WHOLE, _FIRST)
    _class.add_implicit_resolver(_FLOAT, _REAL, _FIRST)
_Loader.add_constructor(_INT, _Loader.construct_number)
_Loader.add_constructor(_FLOAT, _Loader.construct_number)
_Loader.add_constructor(f"{_TAG}bool", _Loader.construct_yes_or_no)


def parse_yaml(text: str, source: str) -> Any:
    """The value of a YAML text; messages name its ``source``, a file or an option.

    Raises:
        YamlError: it is not YAML, a key occurs twice in a mapping, or it is too deep or too large.
    """
    try:
        value = yaml.load(text, _Loader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = f", line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        raise YamlError(f"{source}{place}: {_explained(error)}") from error
    except (yaml.YAMLError, RecursionError) as error:
        raise YamlError(f"{source}: not YAML: {' '.join(str(error).split())}") from error
    _check_size(value, source)
    return value


def read_yaml_file(path: str | Path) -> Any:
    """The value of a YAML file.

    Raises:
        YamlError: the file cannot be read, is not UTF-8 or not YAML, or a key occurs twice in a mapping.
    """
    try:
        text = Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise YamlError(f"{path}: cannot be read: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise YamlError(f"{path}: byte {error.start} is not UTF-8; save the file as UTF-8") from error
    return parse_yaml(text, str(path))


def line_of(path: Path, keys: Sequence[str | int]) -> int | None:
    """The line of a YAML file at which these keys lead to a value, counted from 1.

    It reads the file again, so that only messages pay for lines. None if the file has changed, or if the
    value comes from a merge (``<<``).
    """
    try:
        node = yaml.compose(path.read_text(encoding="utf-8"), _Loader)
    except (OSError, ValueError, RecursionError, yaml.YAMLError):
        return None
    line = None
    for key in keys:
        inside = _children(node).get(str(key))
        if inside is None:
            return None
        line, node = inside
    return line


def _children(node: yaml.Node | None) -> dict[str, tuple[int, yaml.Node]]:
    """Key, or number in a list, to its line and its value's node."""
    if isinstance(node, yaml.MappingNode):
        return {str(key.value): (key.start_mark.line + 1, value) for key, value in node.value}
    if isinstance(node, yaml.SequenceNode):
        return {str(place): (one.start_mark.line + 1, one) for place, one in enumerate(node.value)}
    return {}


def write_yaml(value: Any) -> str:
    """The value as text, from which :func:`parse_yaml` reads the same value."""
    return str(yaml.dump(value, Dumper=_Dumper, sort_keys=False))


def _check_size(value: Any, source: str) -> None:
    """Refuse a value that is too deep or too large to walk through."""
    waiting, count = [(value, 0)], 0
    while waiting:
        found, depth = waiting.pop()
        count += 1
        if depth > DEEPEST:
            raise YamlError(f"{source}: nested more than {DEEPEST} levels deep, or a value holds itself")
        if count > MOST_VALUES:
            raise YamlError(f"{source}: more than {MOST_VALUES:,} values, each alias counted in full")
        if isinstance(found, dict):
            waiting += [(inside, depth + 1) for inside in found.values()]
        elif isinstance(found, list):
            waiting += [(inside, depth + 1) for inside in found]


def _explained(error: yaml.MarkedYAMLError) -> str:
    """What is wrong; for a tab also what would be right."""
    problem = error.problem or error.context or "not YAML"
    if r"'\t'" in problem:
        return "a tab where YAML needs spaces; replace the tab by spaces"
    if found := _NO_CONSTRUCTOR.search(problem):
        tag = found[1].replace(_TAG, "!!")
        return f"{tag} is not supported here; write a text (in quotes), a number, a list or a mapping"
    if "unhashable key" in problem:
        return "a key is a list or a mapping; write a text"
    if isinstance(error, yaml.constructor.ConstructorError):
        return problem
    return f"not YAML: {', '.join(filter(None, (error.context, problem)))}"
