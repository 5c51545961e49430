"""What the stage ``prepare_policy`` says of the policy that training starts from."""

from __future__ import annotations

from pathlib import Path

import pytest
from trl.chat_template_utils import qwen2_5_chat_template

from skillpress.models.policy import Policy, save_policy
from skillpress.pipeline.files import BASE_POLICY
from tasks.prepare_policy import note_of_tools
from tests.support.models.chatting import chat_policy
from tests.support.models.tiny import tiny_policy


@pytest.mark.parametrize(
    ("policy", "said"),
    [
        (tiny_policy(), f"note: {BASE_POLICY}: without a chat template it cannot be shown tools"),
        (chat_policy(qwen2_5_chat_template), ""),
    ],
    ids=["no template", "tools are shown"],
)
def test_of_a_program_it_says_if_the_policy_cannot_be_shown_tools(
    policy: Policy,
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    save_policy(policy, BASE_POLICY)
    note_of_tools()
    notes = [line for line in capsys.readouterr().err.splitlines() if line.startswith("note:")]
    assert len(notes) == bool(said) and all(line.startswith(said) for line in notes)
