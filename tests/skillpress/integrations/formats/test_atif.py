"""ATIF 1.7, read back by pydantic models of that version, which refuse anything unknown to the format.

``atif`` has the rules of Harbor's own models, field by field, and installs beside everything else.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from atif import Trajectory as Document

from skillpress.core.trajectory import Trajectory
from skillpress.integrations.formats.atif import write_atif
from skillpress.integrations.formats.texts import Texts
from tests.support.integrations.playing import episode, ids, unsampled
from tests.support.integrations.playing import step as step_of


def written(path: Path, played: list[Trajectory], texts: Texts) -> list[Document]:
    """The documents, as a reader of the format sees them."""
    write_atif(path, played, texts)
    lines = (
        path.read_text().splitlines() if path.is_file() else [f.read_text() for f in sorted(path.iterdir())]
    )
    documents = [Document.model_validate_json(line) for line in lines]
    assert [d.to_json_dict() for d in documents] == [json.loads(line) for line in lines], "nothing is lost"
    return documents


@pytest.mark.parametrize("output", ["episodes", "episodes.jsonl"])
def test_every_episode_is_a_document_in_a_file_or_a_line(output: str, tmp_path: Path, texts: Texts) -> None:
    played = [episode(0), episode(1), unsampled()]
    documents = written(tmp_path / output, played, texts)
    assert [d.trajectory_id for d in documents] == [
        "trained/run-0/door/0", "trained/run-0/door/1", "explorer/run-0/dark/0",
    ]  # fmt: skip
    assert [d.schema_version for d in documents] == ["ATIF-v1.7"] * 3


def test_a_document_tells_an_episode_in_its_order(tmp_path: Path, texts: Texts) -> None:
    (document,) = written(tmp_path / "one.jsonl", [episode()], texts)
    seen, first, summary, last = document.steps
    assert (seen.source, seen.message) == ("user", "You see a door.")
    assert [step.source for step in (first, summary, last)] == ["agent"] * 3
    assert (first.message, first.reasoning_content) == ("think first open", "think first")
    assert first.tool_calls is not None and first.observation is not None
    assert (first.tool_calls[0].function_name, first.tool_calls[0].arguments) == ("act", {"action": "open"})
    assert first.observation.results[0].content == "what?"
    assert first.extra is not None and first.extra["invalid"] == "unreadable"
    assert summary.tool_calls is None and summary.observation is None and summary.extra is not None
    assert summary.extra["summary"] is True and summary.message == "a door"
    assert last.extra is not None and last.extra["reward"] == 10.5 and "invalid" not in last.extra


def test_token_ids_and_log_probabilities_are_the_episodes_own(tmp_path: Path, texts: Texts) -> None:
    (document,) = written(tmp_path / "one.jsonl", [episode()], texts)
    for step, decision in zip(document.steps[1:], episode().decisions, strict=True):
        assert step.metrics is not None and step.metrics.logprobs is not None
        assert tuple(step.metrics.prompt_token_ids or ()) == decision.prompt_ids
        assert tuple(step.metrics.completion_token_ids or ()) == decision.response_ids
        np.testing.assert_array_equal(np.float32(step.metrics.logprobs), np.float32(decision.logprobs))
    assert document.final_metrics is not None
    assert document.final_metrics.total_prompt_tokens == 15
    assert document.final_metrics.total_completion_tokens == 10


def test_an_agent_without_tokens_and_a_step_without_an_action_are_told_too(
    tmp_path: Path, texts: Texts
) -> None:
    (document,) = written(tmp_path / "one.jsonl", [unsampled()], texts)
    _, look, mute = document.steps
    assert look.metrics is None and look.message == "why not\nlook"
    assert mute.tool_calls is None and mute.observation is not None
    assert mute.observation.results[0].source_call_id is None


def test_how_an_episode_ended_stands_in_its_extra(tmp_path: Path) -> None:
    (document,) = written(tmp_path / "one.jsonl", [episode()], Texts())
    assert document.extra == {
        "task_id": "door", "group_id": "trained/run-0/door", "rollout_index": 0, "policy": "trained",
        "policy_version": 3, "run": 0, "seed": 7, "won": True, "terminated": True, "truncated": False,
        "outcome": "won",
    }  # fmt: skip


def test_the_steps_of_sub_agents_say_what_they_continue(tmp_path: Path, texts: Texts) -> None:
    """Documents count steps from 1, and the first is the observation."""
    prompts = ["<start> you", "<start> see", "<start> you open it", "<start> see open it"]
    calls = tuple(step_of("open", "open", "it", prompt_ids=ids(prompt)) for prompt in prompts)
    apart = replace(episode(), steps=calls[:2], summaries=())
    tree, line = written(
        tmp_path / "calls.jsonl", [replace(episode(), steps=calls, summaries=()), apart], texts
    )
    assert [step.extra["continues"] for step in tree.steps[1:] if step.extra] == [None, None, 2, 3]
    assert all("continues" not in (step.extra or {}) for step in line.steps)
