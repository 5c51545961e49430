"""YAML as we read it: 1e-3 is a number, a key occurs once, and every mistake has its file and line."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillpress.core.yaml_files import YamlError, parse_yaml, read_yaml_file, write_yaml


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("1e-3", 1e-3),
        ("1E5", 1e5),
        ("1.5e3", 1.5e3),
        (".5e2", 50.0),
        ("-2e-4", -2e-4),
        ("+1e0", 1.0),
        ("5", 5),
        ("010", 10),
        ("0o17", 15),
        ("-0x1F", -31),
        ("1_000", 1000),
        ("1.e5", 1e5),
        ("1_000.5", 1000.5),
        ("!!float 3", 3.0),
    ],
)
def test_a_number_with_an_exponent_is_a_number_however_it_is_written(text: str, number: float) -> None:
    assert parse_yaml(text, "here") == number and not isinstance(parse_yaml(text, "here"), str)


@pytest.mark.parametrize(
    "text", ["'1e-3'", "e3", "1e", "1e-3x", "2026-11-25", "12:30:45 pm", "1:30", "1:30.5", "="]
)
def test_what_is_no_number_is_a_text(text: str) -> None:
    assert parse_yaml(text, "here") == text.strip("'")


LAUGHS = "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}' if n else 'x'] * 10)}]\n" for n in range(9))
"""A text of nine lines that expands to ten to the ninth values."""


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a: 1\nb:\n  c: 2\n  c: 3\n", "line 4, column 3: the key 'c' stands in line 3 already; remove one"),
        ("{a: 1, a: 2}", "line 1, column 8: the key 'a' stands in line 1 already"),
        ("a: 1\n\tb: 2", "line 2, column 1: a tab where YAML needs spaces"),
        ("a:\n\t- 1", "line 2, column 1: a tab where YAML needs spaces"),
        ("a: [1,", "line 1, column 7: not YAML"),
        ("a: b: c", "line 1, column 5: not YAML"),
        ("? [1]\n: 2", "line 1, column 3: a key is a list or a mapping; write a text"),
        ("a: !!set {x}", "line 1, column 4: !!set is not supported here"),
        ("a: !!binary aGk=", "line 1, column 4: !!binary is not supported here"),
        ("a: <<", "line 1, column 4: !!merge is not supported here"),
        ("a: !!bool maybe", "line 1, column 4: 'maybe' is neither true nor false"),
        ("a: !!int ''", "line 1, column 4: '' is not a whole number"),
        ("a: !!int +", "line 1, column 4: '+' is not a whole number"),
        ("a: !!float ''", "line 1, column 4: '' is not a number"),
        ("a: !!map [1]", "line 1, column 4: expected a mapping node"),
        ("a: !!map x", "line 1, column 4: expected a mapping node"),
        ("a: 0x" + "f" * 5000, "line 1, column 4: '0xfff"),
        ("a: &a {b: *a}", "nested more than 100 levels deep, or a value holds itself"),
        ("a: &a [*a]", "nested more than 100 levels deep, or a value holds itself"),
        ("[" * 200 + "]" * 200, "nested more than 100 levels deep"),
        (LAUGHS, "more than 1,000,000 values"),
        ("a: \x00", "not YAML"),
        ("a: " + "9" * 5000, "line 1, column 4: '999"),
        ("- " * 3000, "not YAML"),
    ],
)
def test_every_mistake_has_its_file_and_its_line(text: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "own.yaml"
    path.write_text(text)
    with pytest.raises(YamlError) as error:
        read_yaml_file(path)
    assert str(error.value).startswith(str(path)) and said in str(error.value)
    assert "\n" not in str(error.value)


def test_what_cannot_be_read_is_named(tmp_path: Path) -> None:
    (tmp_path / "latin.yaml").write_bytes("a: f\xfcr".encode("latin-1"))
    for name, said in (
        ("nowhere.yaml", "cannot be read: No such file or directory"),
        (".", "cannot be read: Is a directory"),
        ("latin.yaml", "byte 4 is not UTF-8; save the file as UTF-8"),
    ):
        with pytest.raises(YamlError, match=said) as error:
            read_yaml_file(tmp_path / name)
        assert str(error.value).startswith(str(tmp_path / name))


def test_merge_keys_are_read_as_yaml_means_them() -> None:
    assert parse_yaml("a: &x {b: 1, c: 2}\nd: {<<: *x, b: 3}", "here")["d"] == {"b": 3, "c": 2}


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from(["1e-3", "1E5", "yes", "2026-11-25", "~", "1_0", ""]) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)  # fmt: skip


@given(JSON)
def test_what_is_written_is_read_as_the_same_value(value: object) -> None:
    assert parse_yaml(write_yaml(value), "here") == value


def test_no_yaml_is_read_or_written_elsewhere(repository: Path) -> None:
    found = [
        f"{path.relative_to(repository)}:{node.lineno}"
        for folder in ("skillpress", "tasks", "flows")
        for path in (repository / folder).rglob("*.py")
        if path.name != "yaml_files.py"
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Import | ast.ImportFrom)
        if "yaml" in (getattr(node, "module", None), *(name.name for name in node.names))
    ]
    assert not found


def test_merges_of_merges_are_refused_before_they_fill_the_memory() -> None:
    """Seven levels of nine merges each would be five million keys."""
    text = "a0: &a0 {x: 1}\n" + "".join(
        f"a{level}: &a{level} {{<<: [{', '.join([f'*a{level - 1}'] * 9)}]}}\n" for level in range(1, 8)
    )
    with pytest.raises(
        YamlError, match=r"params.yaml, line 6, .*merges 59,049 keys, at most 10,000 are read"
    ):
        parse_yaml(text, "params.yaml")
