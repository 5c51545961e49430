"""The small logs that were once read wrongly, each with its right reading."""

from __future__ import annotations

from pathlib import Path

import pytest

from skillpress.cli.command import main
from skillpress.pipeline import exit_codes
from skillpress.skills.dictionary import load_dictionary
from tests.conftest import shared_data

READ = {
    "anthropic_blocks.jsonl": ("20 traces", "60 steps: 40 call a tool, 20 are words", "bash 20, edit 20"),
    "bom_pretty.json": ("12 traces", "24 steps: 24 call a tool, 0 are words", "ls 12, edit 12"),
    "both_call_fields.jsonl": ("12 traces", "24 steps: 24 call a tool, 0 are words", "ls 12, edit 12"),
    "demonstration_messages.jsonl": ("12 traces", "12 steps: 12 call a tool, 0 are words", "ls 12"),
    "float_reward.jsonl": ("12 traces", "24 steps: 24 call a tool, 0 are words", "ls 12, edit 12"),
    "growing_history.jsonl": (
        "10 traces", "40 steps: 40 call a tool, 0 are words", "ls 10, cat 10, edit 10, test 10",
    ),
    "huge_integer_time.jsonl": ("12 traces", "24 steps: 24 call a tool, 0 are words", "ls 12, edit 12"),
    "lone_surrogate.jsonl": ("12 traces", "24 steps: 24 call a tool, 0 are words", "ls 12, edit 12"),
    "responses_items.jsonl": ("12 traces", "24 steps: 12 call a tool, 12 are words", "search 12"),
    "several_documents.json": ("12 traces", "24 steps: 24 call a tool, 0 are words", "ls 12, edit 12"),
    "tool_calls_as_text.jsonl": ("12 traces", "12 steps: 12 call a tool, 0 are words", "ls 12"),
    "truncated_head.jsonl": ("48 traces", "96 steps: 96 call a tool, 0 are words", "ls 48, edit 48"),
}  # fmt: skip
"""File to its traces, steps and tools."""
OUTCOMES = {"float_reward.jsonl": "reward=1", "lone_surrogate.jsonl": "reward"}
TOLD = {
    "float_reward.jsonl": "outcomes: reward: 6 won, 6 lost",
    "demonstration_messages.jsonl": "left out: 12 demonstration messages",
    "huge_integer_time.jsonl": "1 trace has a time that cannot be read",
    "truncated_head.jsonl": "left out: 2 bad lines",
}


@pytest.fixture(scope="session")
def logs(repository: Path) -> Path:
    return shared_data(repository, "logs", "small logs are")


@pytest.mark.parametrize("name", READ)
def test_it_is_read_rightly(
    name: str, logs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    success = ["--success", OUTCOMES.get(name, "solved")]
    assert main(["skills", str(logs / name), *success, "--output", str(tmp_path)]) == 0
    told = capsys.readouterr()
    traces, steps, tools = READ[name]
    assert told.out.splitlines()[:2] == [f"read: {traces} (chat completions), {steps}", f"tools: {tools}"]
    assert TOLD.get(name, "") in told.out + told.err
    assert (tmp_path / "skills.html").is_file()


SECOND = {
    "thought_in_content.jsonl": ("12 traces", "24 steps: 0 call a tool, 24 are words", "go take"),
    "thought_other_tag.jsonl": ("12 traces", "24 steps: 0 call a tool, 24 are words", "go take"),
    "thought_end_only.jsonl": ("12 traces", "24 steps: 0 call a tool, 24 are words", "go take"),
    "thought_cut_off.jsonl": ("12 traces", "24 steps: 0 call a tool, 24 are words", "go"),
    "search_tags.jsonl": ("40 traces", "129 steps: 129 call a tool, 0 are words", "answer search"),
    "keystrokes_json.jsonl": ("12 traces", "24 steps: 24 call a tool, 0 are words", "ls make"),
    "act_bash_fence.jsonl": ("12 traces", "24 steps: 24 call a tool, 0 are words", "answer bash"),
    "action_sql_fence.jsonl": ("12 traces", "36 steps: 24 call a tool, 12 are words", "Answer Operation"),
    "growing_conversations.jsonl": ("6 traces", "12 steps: 12 call a tool, 0 are words", "a b"),
    "growing_messages.jsonl": ("6 traces", "12 steps: 12 call a tool, 0 are words", "a b"),
    "call_repeated.jsonl": ("6 traces", "12 steps: 12 call a tool, 0 are words", "cat ls"),
    "target_and_exit_status.jsonl": ("16 traces", "32 steps: 32 call a tool, 0 are words", "ls submit"),
    "inspect_two_scorers.json": ("12 traces", "24 steps: 12 call a tool, 12 are words", "bash"),
    "several_scores.jsonl": ("24 traces", "48 steps: 24 call a tool, 24 are words", "cat ls"),
}
"""File of the second table to its traces, steps and skills."""
SAID = {
    "thought_in_content.jsonl": ["outcomes: reward: 6 won, 6 lost"],
    "thought_cut_off.jsonl": ["12 steps without a skill"],
    "keystrokes_json.jsonl": ["outcomes: not certain", "--success 'result' (6 yes, 6 no; "],
    "call_repeated.jsonl": ["tools: ls 6, cat 6"],
    "target_and_exit_status.jsonl": ["outcomes: target: 4 won, 12 lost", "--success 'exit_status=submitted'"],
    "inspect_two_scorers.json": [
        "outcomes: not certain",
        "--success 'scores.includes' (6 yes, 6 no; higher is better)",
        "--success 'scores.refused<=0' (3 yes, 9 no; lower is better)",
    ],
    "several_scores.jsonl": [
        "outcomes: scores.correctness: 12 won, 12 lost",
        "not taken: --success 'scores.hallucination<=0' (12 yes, 12 no; lower is better)",
    ],
}


@pytest.mark.parametrize("name", SECOND)
def test_it_is_read_rightly_since(
    name: str, logs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["skills", str(logs / name), "--output", str(tmp_path)]) == 0
    told = capsys.readouterr()
    traces, steps, skills = SECOND[name]
    first, *_ = told.out.splitlines()
    assert first.startswith(f"read: {traces} (") and first.endswith(steps)
    assert load_dictionary(tmp_path / "dictionary.json").alphabet == tuple(skills.split())
    for said in SAID.get(name, ()):
        assert said in told.out


def test_the_scorer_that_the_user_takes_decides(
    logs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = [str(logs / "inspect_two_scorers.json"), "--output", str(tmp_path)]
    for option, said in (("includes", "6 won, 6 lost"), ("refused<=0", "9 won, 3 lost")):
        assert main(["skills", *log, "--success", f"scores.{option}"]) == 0
        assert f"outcomes: scores.{option.partition('<')[0]}: {said}" in capsys.readouterr().out


def test_calls_without_a_name_are_steps_without_a_skill(
    logs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = str(logs / "null_tool_name.jsonl")
    assert main(["skills", "--look", log]) == 0
    assert "(no name): 12 calls" in capsys.readouterr().out
    assert main(["skills", log, "--output", str(tmp_path / "out")]) == exit_codes.USER_ERROR
    assert "no step has a skill" in capsys.readouterr().err and not (tmp_path / "out").exists()


TRAINERS = {
    "verl_dump.jsonl": ("verl rollouts", "search 12, answer 12", "score: 6 won, 6 lost"),
    "trl_completions.parquet": ("TRL completions", "f 12", "accuracy_reward: 6 won, 6 lost"),
}


@pytest.mark.parametrize("name", TRAINERS)
def test_what_trainers_wrote_is_read(
    name: str, logs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["skills", str(logs / name), "--output", str(tmp_path)]) == 0
    known, tools, outcomes = TRAINERS[name]
    told = capsys.readouterr().out
    assert f"read: 12 traces ({known})" in told and f"tools: {tools}" in told and outcomes in told
