"""Where a lab's skillpress came from, by what installers note beside a package."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from skillpress.cli import origin
from skillpress.cli.origin import source_of, variables, write_origin

WHEEL = "file:///home/me/my%20wheels/skillpress-0.1.0-py3-none-any.whl"


@pytest.mark.parametrize(
    ("noted", "found"),
    [
        (None, {}),
        ({"url": WHEEL, "archive_info": {}}, {"PIP_FIND_LINKS": "file:///home/me/my%20wheels/"}),
        (
            {"url": "file:///home/me/skillpress", "dir_info": {"editable": True}},
            {"SKILLPRESS": "skillpress[train,pipeline] @ file:///home/me/skillpress"},
        ),
        (
            {"url": "https://host/skillpress.git", "vcs_info": {"vcs": "git", "commit_id": "abc"}},
            {"SKILLPRESS": "skillpress[train,pipeline] @ git+https://host/skillpress.git@abc"},
        ),
        (
            {"url": "https://host/skillpress-0.1.0-py3-none-any.whl", "archive_info": {}},
            {"SKILLPRESS": "skillpress[train,pipeline] @ https://host/skillpress-0.1.0-py3-none-any.whl"},
        ),
    ],
)
def test_what_an_installer_noted_says_where_pip_takes_it_from(
    noted: dict[str, Any] | None, found: dict[str, str]
) -> None:
    assert source_of(None if noted is None else json.dumps(noted)) == found


def installed_in(folder: Path, package: Path, monkeypatch: pytest.MonkeyPatch, **noted: Any) -> None:
    """Have a skillpress be installed in a folder, and this process import one from ``package``."""
    described = folder / "skillpress-0.1.0.dist-info"
    described.mkdir(parents=True)
    (described / "METADATA").write_text("Metadata-Version: 2.1\nName: skillpress\nVersion: 0.1.0\n")
    if noted:
        (described / "direct_url.json").write_text(json.dumps(noted))
    monkeypatch.setattr(sys, "path", [str(folder), *sys.path])
    monkeypatch.setattr(origin, "PACKAGE", package.resolve())
    monkeypatch.setattr(origin, "_in_this_environment", lambda found: True)


def test_the_environment_that_has_all_layers_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed_in(tmp_path, tmp_path / "skillpress", monkeypatch, url=WHEEL, archive_info={})
    monkeypatch.setattr(origin, "missing", lambda layer: [])
    monkeypatch.setattr(sys, "executable", "/env/bin/python")
    links = {"PIP_FIND_LINKS": "file:///home/me/my%20wheels/"}
    assert variables({}) == {"INSTALLED": "/env/bin/python", **links}
    monkeypatch.setattr(sys, "executable", "/my env/bin/python")
    assert variables({}) == links, "make would read two words"
    monkeypatch.setattr(sys, "executable", "/env/bin/python")
    monkeypatch.setattr(origin, "missing", lambda layer: ["dvc"] if layer == "pipeline" else [])
    assert variables({}) == links, "the base layer is not enough"


def test_another_skillpress_than_the_imported_one_says_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed_in(tmp_path, tmp_path / "clone" / "skillpress", monkeypatch, url=WHEEL, archive_info={})
    assert variables({}) == {}


def test_an_editable_clone_is_the_imported_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clone = tmp_path / "clone"
    noted = {"url": clone.as_uri(), "dir_info": {"editable": True}}
    installed_in(tmp_path / "site", clone / "skillpress", monkeypatch, **noted)
    assert variables({})["SKILLPRESS"] == f"skillpress[train,pipeline] @ {clone.as_uri()}"


def test_pips_own_variables_are_kept_without_passwords(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed_in(tmp_path, tmp_path / "skillpress", monkeypatch)
    monkeypatch.setattr(origin, "missing", lambda layer: ["dvc"])
    links = {"PIP_INDEX_URL": "https://mirror/simple", "PIP_EXTRA_INDEX_URL": "https://me:secret@host/simple"}
    assert variables({**links, "HOME": "/"}) == {"PIP_INDEX_URL": "https://mirror/simple"}


def test_make_reads_the_values_as_they_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(origin, "variables", lambda: {"SKILLPRESS": "skillpress @ file:///a$b#c"})
    write_origin(tmp_path)
    assert (tmp_path / "origin.mk").read_text().splitlines()[-1] == (
        r"SKILLPRESS ?= skillpress @ file:///a$$b\#c"
    )
