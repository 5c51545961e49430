"""The examples of docs/sandbox.md, run unchanged from the page."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "sandbox.md"
EXAMPLES = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)


@pytest.mark.heavy
@pytest.mark.parametrize(
    ("example", "said"),
    [
        (EXAMPLES[0], ["3", "/home/agent", ""]),
        (EXAMPLES[1], ["1 + 1 2 None 1", "2 ** 10 1024 None 1"]),
    ],
    ids=["sandbox", "pool"],
)
def test_example_says_what_the_page_says(
    example: str, said: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    exec(compile(example, str(PAGE), "exec"), {"__name__": "example"})
    assert sorted(capsys.readouterr().out.splitlines()) == sorted(said)
