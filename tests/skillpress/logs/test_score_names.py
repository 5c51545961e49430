"""Only names of success or reward decide; of the others, what they measure and in which direction is said."""

from __future__ import annotations

from typing import Any

import pytest

from skillpress.logs.fields import Wanted, success_field
from skillpress.logs.outcome import candidates_of, decided
from skillpress.logs.score_names import (
    Meaning,
    higher_is_better,
    is_measure,
    lower_is_better,
    meaning,
)
from tests.support.integrations import foreign_records as foreign
from tests.support.integrations.foreign_records import read
from tests.support.integrations.trace_records import chat

SUCCESS = (
    "resolved", "solved", "is_solved", "success", "isSuccess", "task_success", "success_rate", "passed",
    "all_tests_passed", "test_passed", "won", "is_correct", "correctness", "answer_correctness",
    "AnswerCorrectness", "Answer Correctness", "accuracy", "acc", "agent_goal_accuracy", "task_completion",
    "Task Completion", "goal_success", "pass@1", "scores.correctness", "feedback_stats.correctness.avg",
)  # fmt: skip
REWARD = ("reward", "rewards", "total_reward", "episode_reward", "extra.verifier.reward", "reward.total")
ALONE = ("score", "final_score", "exact_match", "em", "scores.includes", "match", "model_graded_qa")
LOWER = (
    "hallucination", "Hallucination", "toxicity", "is_toxic", "bias", "refused", "refusal", "harmfulness",
    "maliciousness", "misogyny", "criminality", "insensitivity", "controversiality", "pii_leakage",
    "PIILeakage", "role_violation", "misuse", "error", "error_rate", "incorrect", "failed", "test_failed",
    "attack_success", "attack_success_rate", "jailbroken", "latency", "total_cost", "prompt_injection",
    "toxicity_score", "scores.hallucination.value", "timeout", "unsafe",
)  # fmt: skip
HIGHER = (
    "faithfulness", "answer_relevancy", "context_precision", "context_recall", "helpfulness", "groundedness",
    "conciseness", "coherence", "factual_correctness", "Tool Correctness", "tool_call_accuracy",
    "semantic_similarity", "f1", "rouge", "non_toxic", "no_error", "topic_adherence",
)  # fmt: skip
NEITHER = (
    "target_length", "result", "label", "done", "finished", "completed", "status", "verdict", "quality_gate",
    "reward_model", "success_tokens", "step_success", "loss_reward",
)  # fmt: skip


@pytest.mark.parametrize("name", SUCCESS)
def test_a_name_of_success(name: str) -> None:
    assert meaning(name) is Meaning.SUCCESS and higher_is_better(name)


@pytest.mark.parametrize("name", REWARD)
def test_a_name_of_reward(name: str) -> None:
    assert meaning(name) is Meaning.REWARD and higher_is_better(name)


@pytest.mark.parametrize("name", ALONE)
def test_a_name_that_decides_alone(name: str) -> None:
    assert meaning(name) is Meaning.ALONE


@pytest.mark.parametrize("name", LOWER)
def test_a_name_of_which_less_is_better(name: str) -> None:
    assert lower_is_better(name) and not higher_is_better(name)
    assert meaning(name) is Meaning.OTHER and is_measure(name)


@pytest.mark.parametrize("name", HIGHER)
def test_a_name_of_which_more_is_better_but_that_is_not_success(name: str) -> None:
    assert higher_is_better(name) and meaning(name) is Meaning.OTHER


@pytest.mark.parametrize("name", NEITHER)
def test_a_name_that_says_nothing_of_success(name: str) -> None:
    assert meaning(name) is Meaning.OTHER


def talk(**beside: Any) -> dict[str, Any]:
    return {"messages": foreign.openai_messages(), **beside}


def inspect(**scores: str) -> dict[str, Any]:
    return {**foreign.inspect_sample(), "scores": {name: {"value": value} for name, value in scores.items()}}


def langfuse(**scores: float) -> dict[str, Any]:
    held = [{"name": name, "value": value} for name, value in scores.items()]
    return {**foreign.langfuse(), "scores": held}


CERTAIN = {
    "one name of success": (talk(scores={"hallucination": 0, "correctness": 1}), "scores.correctness", True),
    "success before reward": (talk(reward=0.0, is_correct=True), "is_correct", True),
    "success before a score": (talk(score=0.0, acc=1.0), "acc", True),
    "reward before a score": (talk(score=7, reward=0.0), "reward", False),
    "two names that agree": (talk(resolved=True, success=True), "resolved", True),
    "solved before how it ended": (talk(exit_status="submitted", solved=False), "solved", False),
    "a list of scores": (
        talk(feedback_scores=[{"name": "bias", "value": 1}, {"name": "correctness", "value": 0}]),
        "feedback_scores.correctness", False,
    ),
    "LangSmith": (
        talk(feedback_stats={"correctness": {"n": 1, "avg": 1.0}}), "feedback_stats.correctness.avg", True,
    ),
    "JSON text in a table": (talk(scores='{"rude": 0, "correctness": 1}'), "scores.correctness", True),
    "promptfoo": (talk(success=False, namedScores={"toxicity": 0}), "success", False),
    "Langfuse": (langfuse(toxicity=1, correctness=0), "scores.correctness", False),
    "one scorer of inspect's": (inspect(includes="C"), "scores.includes", True),
    "one scorer of success": (inspect(accuracy="I", refused="C"), "scores.accuracy", False),
    "a scorer of several values": (
        {**foreign.inspect_sample(), "scores": {"judge": {"value": {"correct": 1, "rude": 0}}}},
        "scores.judge.value.correct", True,
    ),
    "a score alone": (talk(score=1), "score", True),
}  # fmt: skip


@pytest.mark.parametrize("name", CERTAIN)
def test_a_name_that_means_success_or_reward_is_taken(name: str) -> None:
    record, outcome, success = CERTAIN[name]
    found = read(record)
    assert (found.outcome, found.success) == (outcome, success)
    assert outcome not in [each.path for each in found.candidates]


UNCERTAIN = {
    "hallucination": (talk(hallucination=1), {"hallucination"}),
    "toxicity": (talk(scores={"toxicity": 0}), {"scores.toxicity"}),
    "another name": (talk(scores={"tone": 1}), {"scores.tone"}),
    "a verdict in words": (talk(result="passed"), {"result"}),
    "two scorers": (inspect(refused="C", includes="I"), {"scores.refused", "scores.includes"}),
    "two scorers of answers": (inspect(match="C", exact="I"), {"scores.match", "scores.exact"}),
    "one scorer of another name": (inspect(refused="C"), {"scores.refused"}),
    "two of success": (talk(scores={"correct": 1, "success": 0}), {"scores.correct", "scores.success"}),
    "a score beside scores": (talk(score=1, scores={"bias": 0}), {"score", "scores.bias"}),
    "how it ended": (talk(exit_status="submitted"), {"exit_status"}),
    "DeepEval": (
        talk(metricsData=[{"name": "Hallucination", "score": 0.0, "success": True},
                          {"name": "Bias", "score": 1.0, "success": False}]),
        {"metricsData.Hallucination", "metricsData.Bias"},
    ),
    "ragas": (talk(faithfulness=1.0, context_recall=0.0), {"faithfulness", "context_recall"}),
    "Langfuse": (langfuse(toxicity=1, speed=0), {"scores.toxicity", "scores.speed"}),
    "TRL": (talk(accuracy_reward=1.0, format_reward=0.5), {"accuracy_reward", "format_reward"}),
    "one entry": (talk(scores={"refusal": 1}), {"scores.refusal"}),
}  # fmt: skip


@pytest.mark.parametrize("name", UNCERTAIN)
def test_any_other_score_is_a_candidate_and_the_outcome_unknown(name: str) -> None:
    record, paths = UNCERTAIN[name]
    found = read(record)
    assert (found.outcome, found.success, found.score) == ("", None, None)
    assert {each.path for each in found.candidates} == paths


@pytest.mark.parametrize("name", [*CERTAIN, *UNCERTAIN])
def test_the_option_that_a_candidate_names_takes_it(name: str) -> None:
    record = (CERTAIN.get(name) or UNCERTAIN[name])[0]
    for each in read(record).candidates:
        option = f"{each.path}={each.text}" if each.text else each.path
        if each.text or each.success is not None:
            taken = read(record, Wanted(success=success_field(option)))
            assert (taken.outcome, taken.success) == (each.path, bool(each.text) or each.success)


def test_fields_that_measure_nothing_are_no_candidates() -> None:
    settings = {
        "id": 1,
        "epoch": 0,
        "seed": 1,
        "temperature": 1.0,
        "n": 1,
        "index": 0,
        "num_turns": 1,
        "top_p": 1,
    }
    assert read(talk(**settings, target="1")).candidates == ()


def test_nothing_decides_nothing() -> None:
    assert decided(candidates_of([])) == decided(())
    assert decided(candidates_of([("scores.correctness", None)])).outcome == ""


def scored(**fields: Any) -> dict[str, Any]:
    return chat(solved=None, **fields)


def test_candidates_are_listed_with_the_option_that_takes_one_and_its_direction(read_lines) -> None:
    log = read_lines(*[scored(scores={"toxicity": n % 2, "tone": n / 4}) for n in range(4)])
    assert [trace.success for trace in log.traces] == [None] * 4
    (said,) = log.warnings
    assert "it is not certain which field says whether a trace succeeded" in said
    assert "--success 'scores.toxicity<=0' (2 yes, 2 no; lower is better)" in said
    assert "--success 'scores.tone>=NUMBER' (from 0 to 0.75; its name does not say which is better)" in said
    taken = read_lines(
        *[scored(scores={"toxicity": n % 2}) for n in range(4)],
        wanted=Wanted(success=success_field("scores.toxicity<=0")),
    )
    assert [trace.success for trace in taken.traces] == [True, False, True, False] and taken.warnings == []


def test_a_name_of_which_less_is_better_is_taken_as_it_is_only_with_a_warning(read_lines) -> None:
    lines = [scored(toxicity=n % 2) for n in range(4)]
    log = read_lines(*lines, wanted=Wanted(success=success_field("toxicity")))
    assert [trace.success for trace in log.traces] == [False, True, False, True]
    assert log.warnings == [
        "--success toxicity: its name suggests that lower is better; use --success 'toxicity<=0' for that"
    ]


def test_names_of_success_that_disagree_in_any_trace_decide_none(read_lines) -> None:
    lines = [scored(passed=n % 2 == 0, solved_it=None, correct=n in (0, 2, 3)) for n in range(4)]
    log = read_lines(*lines)
    assert [trace.success for trace in log.traces] == [None] * 4 and log.outcomes.named() == {}
    assert (
        "--success 'passed' (2 yes, 2 no" in log.warnings[0] and "'correct' (3 yes, 1 no" in log.warnings[0]
    )
    agreeing = read_lines(*lines[:3]).traces
    assert [trace.success for trace in agreeing] == [True, False, True]


@pytest.mark.parametrize(
    ("option", "value", "won"),
    [
        ("r<=0", 0.0, True), ("r<=0", 1, False), ("r<=0.5", "0.4", True), ("r<=0", False, True),
        ("r<=0", "no", True), ("r<=0", "yes", False), ("r>=1", "passed", True), ("r<=0", None, None),
    ],
)  # fmt: skip
def test_less_may_be_better(option: str, value: object, won: bool | None) -> None:
    assert success_field(option).of(value) is won and success_field(option).text == option
