"""Model calls with growing histories become runs: each step counts once, what is beside a run is named."""

from __future__ import annotations

import random
from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from skillpress.environments.calls.steps import TraceStep
from skillpress.logs.joining import AGAIN, BESIDE, Joiner, Kept, TracePiece, joined
from skillpress.logs.trace import ModelCallPlace, Trace, TracePlace


def is_step(message: str) -> bool:
    """Messages are words; those of the assistant begin with a capital letter, and each is one step."""
    return message[0].isupper()


def step_of(message: str) -> TraceStep:
    return TraceStep(message.rstrip("!"), message)


def hashed(message: str) -> int:
    return hash(("message", message))


class Calls:
    """A log of calls, joined as they are added."""

    def __init__(self) -> None:
        self.joiner = Joiner()
        self.traces: list[Trace] = []

    def ask(
        self,
        history: str,
        answer: str,
        session: str = "",
        success: bool | None = None,
        task: str = "",
        **links: str,
    ) -> None:
        """A call with these messages, in words; ``answer`` as it is in a later history."""
        messages = history.split()
        earlier = [step_of(word) for word in messages if is_step(word)]
        steps = (*earlier, step_of(answer))
        call = ModelCallPlace(
            session, tuple(map(hashed, messages)), answer=hashed(answer), earlier=len(earlier), **links
        )
        number = len(self.traces)
        self.traces.append(Trace("", steps, success, call=call))
        names = tuple((step.content,) for step in steps)
        tools = tuple(step.tool for step in steps)
        kept = Kept(
            labels=names, tools=tools, success=success, task=task, version="", time=None, outcome="",
            score=None, candidates=(),
            left_out={}, format="chat", number=number, pieces=(TracePiece(TracePlace(0, number, number)),),
        )  # fmt: skip
        self.joiner.add(call, steps, kept)

    def runs(self) -> list[Kept]:
        """The runs; what is read again from their pieces must be the same."""
        found = list(self.joiner.runs())
        for kept in found:
            parts = [self.traces[piece.place.position] for piece in kept.pieces]
            again = parts[0] if len(parts) == 1 else joined(parts, kept.pieces)
            assert tuple((step.content,) for step in again.steps) == kept.labels
        return found

    def steps(self) -> list[str]:
        return [" ".join(str(label) for (label,) in kept.labels) for kept in self.runs()]

    @property
    def left_out(self) -> dict[str, int]:
        return {reason: count for reason, count in self.joiner.left_out.items() if count}


def ask_all(calls: Calls, history: str, answers: str, session: str = "") -> str:
    """One conversation, answer by answer; returns the history after it."""
    for answer in answers.split():
        calls.ask(history, answer, session)
        history = f"{history} {answer} result"
    return history


def test_a_history_that_goes_on_is_one_run() -> None:
    calls = Calls()
    ask_all(calls, "system task", "List Edit Test")
    assert calls.steps() == ["List Edit Test"] and not calls.left_out


def test_a_run_is_read_again_from_its_last_call() -> None:
    calls = Calls()
    ask_all(calls, "system task", "List Edit Test")
    (kept,) = calls.runs()
    assert [piece.place.number for piece in kept.pieces] == [2]


def test_an_answer_that_is_sent_back_in_another_form_goes_on_too() -> None:
    calls = Calls()
    calls.ask("task", "List")
    calls.ask("task List! result", "Edit")
    assert calls.steps() == ["List! Edit"]
    calls = Calls()
    calls.ask("task", "List", "s")
    calls.ask("task Listed result", "Edit", "s")
    assert calls.steps() == ["Listed Edit"]


def test_whole_runs_of_one_task_are_kept_apart_although_one_begins_with_what_the_other_was_asked() -> None:
    calls = Calls()
    calls.ask("task", "Answer")
    calls.ask("task List result", "Edit")
    assert calls.steps() == ["Answer", "List Edit"]


def test_runs_of_one_task_that_begin_alike_are_kept_apart() -> None:
    calls = Calls()
    calls.ask("system task", "List")
    calls.ask("system task", "Edit")
    calls.ask("system task Edit done", "Test")
    calls.ask("system task List files", "Edit")
    assert sorted(calls.steps()) == ["Edit Test", "List Edit"] and not calls.left_out


def test_runs_of_different_tasks_are_kept_apart_although_one_begins_with_the_other() -> None:
    calls = Calls()
    calls.ask("", "Open", task="a")
    calls.ask("Open ok", "Test", task="b", success=True)
    calls.ask("Open ok Test ok", "Edit", task="c", success=False)
    calls.ask("Open ok", "Test", task="d")
    assert [(run.task, run.success, len(run.tools)) for run in calls.runs()] == [
        ("a", None, 1), ("b", True, 2), ("c", False, 3), ("d", None, 2),
    ]  # fmt: skip


def test_a_task_that_some_records_name_parts_no_run_and_a_session_says_more() -> None:
    calls = Calls()
    calls.ask("hello", "Open", task="a")
    calls.ask("hello Open ok", "Test")
    calls.ask("hello", "Open", "session", task="b")
    calls.ask("hello Open ok", "Test", "session", task="c")
    assert [(run.task, len(run.tools)) for run in calls.runs()] == [("a", 2), ("c", 2)]


def test_records_of_one_call_each_are_runs_of_their_own() -> None:
    calls = Calls()
    for answer in ("Yes", "No", "Yes"):
        calls.ask("system task", answer)
    assert calls.steps() == ["Yes", "No", "Yes"]


def test_a_call_that_is_asked_again_is_counted_and_its_first_answer_forgotten() -> None:
    calls = Calls()
    history = ask_all(calls, "task", "List")
    for answer in ("Broken", "Edit"):
        calls.ask(history, answer)
    calls.ask(f"{history} Edit result", "Test")
    assert calls.steps() == ["List Edit Test"] and calls.left_out == {AGAIN: 1}


def test_a_first_call_that_is_asked_again_is_no_run_where_another_goes_on() -> None:
    calls = Calls()
    calls.ask("task", "Broken")
    ask_all(calls, "task", "List Edit")
    assert calls.steps() == ["List Edit"] and calls.left_out == {AGAIN: 1}


def test_a_first_call_with_an_outcome_of_its_own_is_a_run() -> None:
    calls = Calls()
    calls.ask("task", "Answer", success=False)
    ask_all(calls, "task", "List Edit")
    assert calls.steps() == ["Answer", "List Edit"]


def test_a_session_goes_on_after_its_history_was_rewritten() -> None:
    calls = Calls()
    ask_all(calls, "system task", "List Edit Test", "s")
    ask_all(calls, "system summary Test result", "List Submit", "s")
    assert calls.steps() == ["List Edit Test List Submit"], "Test is in both histories, and counts once"
    assert not calls.left_out


def test_what_is_in_the_rewritten_history_alone_counts() -> None:
    calls = Calls()
    ask_all(calls, "system task", "List Edit", "s")
    ask_all(calls, "system summary Edit result Test result", "Submit", "s")
    assert calls.steps() == ["List Edit Test Submit"]


def test_a_sub_agent_in_the_same_session_is_left_out_and_counted() -> None:
    calls = Calls()
    history = ask_all(calls, "system task", "List Delegate", "s")
    ask_all(calls, "other subtask", "Search Read", "s")
    ask_all(calls, "other subtask2", "Search Read", "s")
    ask_all(calls, history, "Edit Test", "s")
    assert calls.steps() == ["List Delegate Edit Test"] and calls.left_out == {BESIDE: 2}


def test_sub_agents_that_work_at_the_same_time_are_left_out() -> None:
    calls = Calls()
    main = ask_all(calls, "system task", "Delegate", "s")
    one = ask_all(calls, "other one", "Search", "s")
    two = ask_all(calls, "other two", "Read", "s")
    ask_all(calls, one, "Search", "s")
    ask_all(calls, two, "Read", "s")
    main = ask_all(calls, main, "Edit", "s")
    ask_all(calls, "system summary", "Test", "s")
    assert calls.steps() == ["Delegate Edit Test"] and calls.left_out == {BESIDE: 2}


def test_a_helper_between_the_calls_of_a_run_is_left_out() -> None:
    calls = Calls()
    history = "system task"
    for answer in ("List", "Edit", "Test"):
        history = ask_all(calls, history, answer, "s")
        calls.ask(f"helper {answer}", "Title", "s")
    ask_all(calls, history, "Submit", "s")
    assert calls.steps() == ["List Edit Test Submit"] and calls.left_out == {BESIDE: 3}


def test_sessions_are_apart_even_where_their_histories_are_equal() -> None:
    calls = Calls()
    for session in ("a", "b"):
        ask_all(calls, "system task", "List Edit", session)
    assert calls.steps() == ["List Edit"] * 2


def test_a_link_says_what_goes_on_although_records_hold_only_what_is_new() -> None:
    calls = Calls()
    calls.ask("task", "List", own="1")
    calls.ask("result", "Edit", own="2", parent="1")
    calls.ask("result", "Test", own="3", parent="2")
    assert calls.steps() == ["List Edit Test"]


def test_a_second_continuation_of_one_call_is_beside_the_run() -> None:
    calls = Calls()
    calls.ask("task", "List", own="1")
    calls.ask("result", "Edit", own="2", parent="1")
    calls.ask("result2", "Test", own="3", parent="2")
    calls.ask("other", "Search", own="4", parent="1")
    calls.ask("other2", "Read", own="5", parent="4")
    assert calls.steps() == ["List Edit Test"] and calls.left_out == {BESIDE: 2}


def test_the_run_that_a_sub_agents_link_names_goes_on_with_its_own_history() -> None:
    calls = Calls()
    calls.ask("task", "Delegate", own="1")
    calls.ask("subtask", "Search", own="2", parent="1")
    calls.ask("task Delegate result", "Edit", own="3", parent="1")
    assert calls.steps() == ["Delegate Edit"] and calls.left_out == {BESIDE: 1}


def test_a_link_to_a_call_that_is_not_in_the_log_says_nothing() -> None:
    calls = Calls()
    calls.ask("task", "List", own="2", parent="1")
    calls.ask("task List result", "Edit", own="3", parent="2")
    assert calls.steps() == ["List Edit"]


def test_a_session_of_calls_without_a_history_is_one_run() -> None:
    calls = Calls()
    for answer in ("List", "List", "Edit"):
        calls.ask("", answer, "s")
    assert calls.steps() == ["List List Edit"]


def test_an_outcome_that_any_call_of_a_run_says_is_the_runs_and_the_last_one_counts() -> None:
    calls = Calls()
    calls.ask("task", "List", success=False)
    calls.ask("task List result", "Edit", success=True)
    calls.ask("task List result Edit result", "Test")
    assert [kept.success for kept in calls.runs()] == [True]


NAMES = st.lists(st.sampled_from(["List", "Edit", "Test", "Read"]), min_size=1, max_size=6)


@given(runs=st.lists(NAMES, min_size=1, max_size=5), sessions=st.booleans(), seed=st.integers(0, 99))
def test_however_runs_are_interleaved_each_is_found(
    runs: Sequence[Sequence[str]], sessions: bool, seed: int
) -> None:
    """Each run's own calls stay in order; only that is needed."""
    chance, calls = random.Random(seed), Calls()
    waiting = {number: (f"system task{number}", list(run)) for number, run in enumerate(runs)}
    while waiting:
        number = chance.choice(sorted(waiting))
        history, left = waiting.pop(number)
        history = ask_all(calls, history, left.pop(0), str(number) if sessions else "")
        if left:
            waiting[number] = (history, left)
    assert sorted(calls.steps()) == sorted(" ".join(run) for run in runs) and not calls.left_out


@given(before=NAMES, kept=st.integers(0, 6), after=NAMES)
def test_a_compaction_repeats_no_step(before: Sequence[str], kept: int, after: Sequence[str]) -> None:
    calls = Calls()
    ask_all(calls, "system task", " ".join(before), "s")
    still = " ".join(f"{name} result" for name in before[len(before) - min(kept, len(before)) :])
    ask_all(calls, f"system summary {still}".strip(), " ".join(after), "s")
    assert calls.steps() == [" ".join([*before, *after])]
