"""The example of docs/viewer.md, run unchanged from the page."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from skillpress.core.rollout_files import write_rollouts
from skillpress.pipeline.files import EVALUATION_ROLLOUTS
from tests.support.reports.viewer_samples import ordinary

PAGE = Path(__file__).parents[2] / "docs" / "viewer.md"


def test_the_example_finds_the_longest_losses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (example,) = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    monkeypatch.chdir(tmp_path)
    write_rollouts(EVALUATION_ROLLOUTS, ordinary())
    exec(compile(example, str(PAGE), "exec"), {"__name__": "example"})
    lost = [(len(each.steps), each) for each in ordinary() if not each.won]
    longest = sorted(lost, key=lambda pair: -pair[0])[:3]
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == f"{len(lost)} lost episodes"
    assert [line.split()[1:3] for line in lines[1:4]] == [[e.task_id, str(n)] for n, e in longest]
    assert lines[4] == longest[0][1].steps[0].action
