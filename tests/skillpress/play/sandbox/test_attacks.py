"""The table of attacks in docs/sandbox.md matches the tests of attacks."""

from __future__ import annotations

import re

from tests.skillpress.play.sandbox import (
    test_attacks_by_messages,
    test_attacks_on_memory,
    test_attacks_on_secrets,
    test_attacks_on_time,
)
from tests.support.play.attacking import NOT_HELD, ROOT

FILES = (
    test_attacks_on_time,
    test_attacks_on_memory,
    test_attacks_on_secrets,
    test_attacks_by_messages,
)


def test_every_attack_has_its_row_in_the_docs() -> None:
    rows = re.findall(
        r"^\| `(\w+)` \|.*\| (.*) \|$", (ROOT / "docs" / "sandbox.md").read_text(), re.MULTILINE
    )
    tests = [
        name.removeprefix("test_attack_")
        for file in FILES
        for name in vars(file)
        if name.startswith("test_attack_")
    ]
    assert [name for name, _ in rows] == tests
    assert {name for name, held in rows if held.startswith("**not held**")} == NOT_HELD["sandlock"]
