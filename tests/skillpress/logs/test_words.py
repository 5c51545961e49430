"""Commands are commands, and every writer's prose is prose."""

from __future__ import annotations

import pytest

from skillpress.environments.calls.steps import TraceStep
from skillpress.environments.countdown.parameters import CountdownParameters
from skillpress.environments.section import SplitSizes
from skillpress.environments.textworld_cooking.design import HARD, GameSettings
from skillpress.environments.textworld_cooking.tasks import describe, task_of
from skillpress.logs.words import DISTINCT_FROM, MOST_SENTENCES, Words, is_call_like, is_sentence
from tests.support.integrations.prose import CALLS_IN_TEXT, PROSE

ALFWORLD = (
    "go to dresser 1", "take newspaper 2 from dresser 1", "open drawer 4", "move newspaper 2 to drawer 4",
    "look", "inventory", "examine shelf 1", "use desklamp 1", "heat egg 1 with microwave 1",
    "clean soapbar 2 with sinkbasin 1", "cool apple 1 with fridge 1", "put apple 1 in/on countertop 2",
)  # fmt: skip
CELLS = (
    "search('x')", "print(read('x'))", "submit_final_answer('Oslo, in Norway.')",
    "notepad.plan('First, look.')",
    "x = 1", 'print("compared:", read("x"))', "for page in pages:\n    print(page)", "import re",
)  # fmt: skip
OTHERS = (
    "search[red shoes, size 9]", "click[Buy Now]", "[crane]", "LOOK!", " - take it", "move 3 north",
    "pick up the red ball", "goto(kitchen)", "attack goblin with sword", "Answer 42",
)  # fmt: skip


def cooked() -> list[str]:
    settings = (HARD, GameSettings(1, 1, True, True))
    tasks = (task_of(describe(each, seed), "train") for each in settings for seed in range(4))
    return [command for task in tasks for command in task.spec["walkthrough"]]


def counted() -> list[str]:
    section = CountdownParameters(
        name="countdown", max_steps=10, min_numbers=3, max_numbers=4, min_target=10, max_target=200
    )
    oracle = section.make_oracle()
    tasks = section.make_tasks(SplitSizes(20, 0, 0), 0)
    return [word for task in tasks for word in oracle(task, 0.2, 1)]


@pytest.mark.parametrize("actions", [cooked, counted, lambda: ALFWORLD, lambda: CELLS, lambda: OTHERS])
def test_no_action_of_an_environment_is_a_sentence_or_a_call_in_text(actions) -> None:
    assert [action for action in actions() if is_sentence(action) or is_call_like(action)] == []


@pytest.mark.parametrize("writer", PROSE)
def test_prose_is_prose(writer: str) -> None:
    sentences = [is_sentence(turn) for turn in PROSE[writer]]
    assert sum(sentences) / len(sentences) > 2 * MOST_SENTENCES
    assert not any(map(is_call_like, PROSE[writer]))
    assert "read like prose" in (of(PROSE[writer]).refusal(len(sentences), called=0) or "")


@pytest.mark.parametrize("form", CALLS_IN_TEXT)
def test_calls_that_no_reader_knows_are_seen(form: str) -> None:
    said = of(CALLS_IN_TEXT[form]).refusal(len(CALLS_IN_TEXT[form]), called=0)
    assert said is not None and "a call in an unknown form" in said and "--call" in said


def of(texts: list[str], refused: bool = False) -> Words:
    words = Words()
    for text in texts:
        words.add(TraceStep(None, text, refused=refused))
    return words


def test_prose_beside_calls_of_tools_is_no_reason_to_stop() -> None:
    prose = PROSE["a tutor"] * 10
    assert of(prose).refusal(60, called=3) is None
    fenced = CALLS_IN_TEXT["fenced blocks of its own"]
    assert of(fenced).refusal(3, called=3) is None, "an answer may show code"
    assert of(CALLS_IN_TEXT["thoughts and actions"]).refusal(3, called=3) is not None
    assert of(CALLS_IN_TEXT["thoughts and actions"]).refusal(3, called=30) is None, "they are few"


def test_answers_that_begin_with_ever_new_words_are_no_commands() -> None:
    answers = [f"w{number}" for number in range(DISTINCT_FROM)]
    assert "40 different words in 40 texts" in (of(answers).refusal(40, called=0) or "")
    assert of(answers[:-1]).refusal(39, called=0) is None, "too few to say so"


def test_refused_steps_say_nothing() -> None:
    assert of(PROSE["a tutor"], refused=True).refusal(6, called=0) is None


def test_texts_after_the_first_are_judged_now_and_then() -> None:
    words = of(["go to desk 1", "take pen 2"] * 2000)
    assert words.steps == 4000 and words.judged == 2000 + 2000 // 16
    assert words.refusal(4000, called=0) is None


@pytest.mark.parametrize(
    "text",
    [
        "<verdict>north</verdict>", '{"verdict": "north"}', "{'verdict': 'north'}", '[{"verdict": 1}]',
        "<!-- north -->", "[VERDICT] north", "<|verdict|>north",
    ],
)  # fmt: skip
def test_words_that_begin_with_a_tag_or_with_json_are_refused_where_no_tool_is_called(text: str) -> None:
    mixed = of([text, "go north", "take lamp", "open door"] * 3)
    assert "begin with a tag or with JSON" in (mixed.refusal(12, called=0) or "")
    assert "--call PATTERN" in (mixed.refusal(12, called=0) or "")
    assert mixed.refusal(12, called=3) is None, "an answer may have a form"


def test_words_that_nearly_all_begin_alike_are_refused() -> None:
    assert "100% of the words begin with 'go', which distinguishes no" in (
        of(["go 1"] * 20).refusal(20, 0) or ""
    )
    assert of(["go 1"] * 19).refusal(19, called=0) is None, "too few to say so"
    assert of(["go 1"] * 17 + ["look"] * 3).refusal(20, called=0) is None
    assert of(["go 1"] * 12 + [""] * 12).refusal(24, called=0) is None, (
        "half of the steps are cut-off thoughts"
    )
    assert of(["go 1"] * 20).refusal(20, called=1) is None
