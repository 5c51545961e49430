"""Packages inside: a folder of wheels, installed once, without a network, and read-only."""

from __future__ import annotations

import base64
import hashlib
import zipfile
from pathlib import Path

import pytest

from skillpress.core.errors import UserError
from skillpress.rollouts.sandbox import Sandbox, SandboxPool
from skillpress.rollouts.sandbox.packages import installed


def wheel(folder: Path, name: str, value: int, needs: str = "") -> Path:
    """A package of one module with one number, as defined by PEP 427."""
    info = f"{name}-1.0.dist-info"
    files = {
        f"{name}.py": f"value = {value}\n",
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n{needs}",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    lines = []
    for path, text in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
        lines.append(f"{path},sha256={digest},{len(text)}")
    files[f"{info}/RECORD"] = "\n".join([*lines, f"{info}/RECORD,,"]) + "\n"
    target = folder / f"{name}-1.0-py3-none-any.whl"
    with zipfile.ZipFile(target, "w") as archive:
        for path, text in files.items():
            archive.writestr(path, text)
    return target


@pytest.fixture(scope="module")  # pip is slow
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two packages, one of which needs the other."""
    folder = tmp_path_factory.mktemp("wheels")
    wheel(folder, "answering", 42, needs="Requires-Dist: asking\n")
    wheel(folder, "asking", 7)
    return folder


def test_code_inside_imports_what_the_folder_holds_and_cannot_change_it(wheels: Path) -> None:
    with Sandbox.start(wheels=wheels) as sandbox:
        assert sandbox.execute("import answering, asking\nanswering.value, asking.value").result == "(42, 7)"
        assert "Error" in (sandbox.execute("open(answering.__file__, 'w')").error or "")


def test_nothing_of_it_is_inside_unless_it_is_named() -> None:
    with Sandbox.start() as sandbox:
        assert "ModuleNotFoundError" in (sandbox.execute("import answering").error or "")
        assert "ModuleNotFoundError" in (sandbox.execute("import numpy").error or "")


def test_a_pool_gives_them_to_each_of_its_sandboxes(wheels: Path) -> None:
    with SandboxPool(ready=1, wheels=wheels) as pool, pool.sandbox() as sandbox:
        assert sandbox.execute("import answering\nanswering.value").result == "42"


def test_a_folder_is_installed_once_and_anew_when_it_changes(wheels: Path) -> None:
    first = installed(wheels)
    assert installed(wheels) == first
    wheel(wheels, "asking", 8)
    second = installed(wheels)
    values = [(folder / "asking.py").read_text() for folder in (first, second)]
    assert values == ["value = 7\n", "value = 8\n"]


def test_what_is_missing_is_named_and_no_index_is_asked(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"no file \*\.whl was found"):
        Sandbox.start(wheels=tmp_path)
    wheel(tmp_path, "answering", 42, needs="Requires-Dist: numpy\n")
    with pytest.raises(UserError, match=r"(?s)cannot install.*numpy"):
        Sandbox.start(wheels=tmp_path)
    assert not list((tmp_path / "installed").glob("*"))
