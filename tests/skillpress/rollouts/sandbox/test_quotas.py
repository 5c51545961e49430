"""How many sandboxes the quotas of one user leave room for."""

from __future__ import annotations

import resource
from pathlib import Path

import pytest

from skillpress.rollouts.sandbox.bubblewrap import NAMESPACES, PROCESSES, room


def test_the_scarcest_quota_decides_and_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda kind: (3000, 3000))
    for kind in NAMESPACES:
        (tmp_path / f"max_{kind}_namespaces").write_text("5000\n")
    assert room(tmp_path) == (3000 // PROCESSES, "ulimit -u")
    (tmp_path / "max_user_namespaces").write_text("1001\n")
    assert room(tmp_path) == (500, "user.max_user_namespaces")
    (tmp_path / "max_net_namespaces").write_text("0\n")
    assert room(tmp_path) == (0, "user.max_net_namespaces")


def test_this_machine_has_room() -> None:
    assert room()[0] > 0
