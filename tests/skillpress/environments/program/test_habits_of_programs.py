"""What programs do with the vendor's client, down to the recorded tokens: they are the sampled ones."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from trl.chat_template_utils import qwen2_5_chat_template

from skillpress.core.chains import Pairs, in_chains
from skillpress.core.engine import Completion, Promises, Sampling, StateDict
from skillpress.core.errors import PolicyError
from skillpress.core.trajectory import Step, Task, TokenIds, Trajectory
from skillpress.environments.program.shared import SharedPrograms
from skillpress.models.engines.batch import BatchEngine
from skillpress.models.policy import Policy
from skillpress.rollouts.collection import Collector, ThreadVectorEnv, requests
from skillpress.rollouts.programs.tool_calls import hermes
from tests.support.models.chatting import chat_policy
from tests.support.rollouts import habits
from tests.support.rollouts.program_parts import agent_of, section_of

POLICY = chat_policy(qwen2_5_chat_template, merges=[("o", "o"), ("l", "oo"), ("t", "h"), ("th", "e")])
"""Some texts have several tokenizations: ``look`` is ``loo k``, ``l oo k`` or ``l o o k``."""
BUDGET = 2048
GOOD = '<tool_call>{"name": "look", "arguments": {"at": "the loom"}}</tool_call>'
BAD = 'So: <tool_call>{"name": "look", "arguments": {"at": }</tool_call>'
ENDING = "The other door looks cool, too!"


def said(prompt: str) -> str:
    """The model's answer to a prompt."""
    last = prompt.split("<|im_start|>")[-2]
    if "find the door" in last:
        return BAD
    if "no call" in last:
        return f"I look.\n{GOOD}"
    return "up" if "go on" in last or "and on" in last else ENDING


class Drawing(BatchEngine):
    """Says what ``said`` says, in tokens that are drawn: other ones, mostly, than the text would be encoded
    to. Remembers every prompt and its completion in order."""

    promises = Promises(exact_seeds=True, exact_logprobs=False, lockstep=True)

    def __init__(self) -> None:
        super().__init__()
        self.drawn: list[tuple[TokenIds, Completion]] = []

    def generate(
        self, prompts: Sequence[TokenIds], sampling: Sampling, seeds: Sequence[int]
    ) -> list[Completion]:
        found = [self._one(prompt, seed) for prompt, seed in zip(prompts, seeds, strict=True)]
        self.drawn += zip(prompts, found, strict=True)
        return found

    def update_weights(self, weights: StateDict, version: int) -> None:
        """There are none."""

    @staticmethod
    def _one(prompt: TokenIds, seed: int) -> Completion:
        draw, text = np.random.default_rng(seed), said(POLICY.tokenizer.decode(prompt))
        cuts = np.flatnonzero(draw.random(len(text)) < 0.4)
        parts = [text[start:end] for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]
        ids = [number for part in parts for number in POLICY.encode_response(part)[:-1]]
        ids.append(POLICY.encode_response("")[-1])
        return Completion(tuple(ids), -draw.random(len(ids), np.float32), "stop")


Play = Callable[[str], tuple[Trajectory, list[tuple[TokenIds, Completion]]]]


@pytest.fixture(scope="module")
def play() -> Iterator[Play]:
    """Plays an episode of a habit; returns it with what was drawn for it."""
    with playing(POLICY) as made:
        yield made


@contextmanager
def playing(policy: Policy) -> Iterator[Play]:
    section = section_of(
        run=f"{habits.__name__}:play", verify=f"{habits.__name__}:always", max_calls=6, isolation="none"
    )
    shared, engine = SharedPrograms(section, 1), Drawing()
    agent = agent_of(policy, engine, BUDGET, hermes, 512)

    def one(habit: str) -> tuple[Trajectory, list[tuple[TokenIds, Completion]]]:
        engine.drawn.clear()
        task = Task("a", "program", 0, {"id": "a", "habit": habit})
        (episode,) = collector.collect(requests([task], 1, 7, "test"))
        assert episode.won, episode.steps[-1].observation
        return episode, list(engine.drawn)

    with Collector(ThreadVectorEnv(shared, shared.seconds, shared.close), agent, 1) as collector:
        yield one


def pairs(steps: Sequence[Step]) -> list[tuple[TokenIds, TokenIds]]:
    return [(step.prompt_ids, step.response_ids) for step in steps]


def returned(episode: Trajectory) -> Any:
    """What the program returned."""
    return json.loads(episode.steps[-1].observation)


def assert_as_drawn(steps: Sequence[Step], drawn: Sequence[tuple[TokenIds, Completion]]) -> None:
    """Every step has its prompt, and of the tokens drawn for it the first, with their log-probabilities."""
    for step, (prompt, completion) in zip(steps, drawn, strict=True):
        kept = len(step.response_ids)
        assert step.prompt_ids == prompt
        assert step.response_ids == completion.token_ids[:kept]
        assert step.logprobs.tolist() == completion.logprobs[:kept].tolist()
        assert [(span.start, span.end) for span in step.weight_spans] == [(0, kept)]


def test_what_is_drawn_is_mostly_not_what_the_text_would_be_encoded_to(play: Play) -> None:
    episode, _ = play("limits")
    whole = episode.steps[0].response_ids
    assert POLICY.decode(whole) == ENDING and whole != POLICY.encode_response(ENDING)


def test_a_rewritten_history_begins_a_new_chain_of_exact_tokens(play: Play) -> None:
    episode, drawn = play("edits_its_history")
    assert_as_drawn(episode.steps, drawn)
    assert [step.response_ids for step in episode.steps] == [each.token_ids for _, each in drawn]
    found = Pairs.of(pairs(episode.steps))
    assert found.goes_on.tolist() == [False, True, False, True, False]
    assert in_chains(found, np.zeros(5, np.int64)).tolist() == [0, 1, 2, 3, 4]
    shown = [POLICY.tokenizer.decode(step.prompt_ids) for step in episode.steps]
    assert "as before" not in shown[1] and "as before" in shown[2] and "up, up" in shown[4]
    # A step's observation is what the next request adds: after an edit, all of it.
    assert [step.observation for step in episode.steps[:2]] == ["and on, 0", "go on, as before"]


def test_a_bad_call_is_a_step_of_its_own_that_reaches_the_program_as_text(play: Play) -> None:
    episode, drawn = play("answers_calls")
    assert_as_drawn(episode.steps, drawn)
    assert [step.invalid for step in episode.steps] == ["broken_call", None, None]
    assert [step.response_ids for step in episode.steps] == [each.token_ids for _, each in drawn]
    assert [json.loads(step.action) for step in episode.steps] == [
        {"content": BAD},
        {"content": "I look.", "calls": [{"tool": "look", "arguments": {"at": "the loom"}}]},
        {"content": ENDING},
    ]
    _, bad, _, good, tool, ending = returned(episode)
    assert bad["content"] == BAD and not bad.get("tool_calls")
    assert good["tool_calls"][0]["id"] == tool["tool_call_id"]
    assert episode.steps[1].observation == "nothing at the loom" and ending["content"] == ENDING


def test_a_response_is_cut_at_the_token_that_completes_its_stop_or_reaches_its_limit(play: Play) -> None:
    episode, drawn = play("limits")
    assert_as_drawn(episode.steps, drawn)

    def completing(ids: TokenIds, stop: str) -> int:
        return next(length for length in range(len(ids)) if stop in POLICY.decode(ids[:length]))

    first, stopped, short, both = (completion.token_ids for _, completion in drawn)
    lengths = [len(first), completing(stopped, "oo"), 7, 7]
    assert completing(both, "cool") > 7
    assert [len(step.response_ids) for step in episode.steps] == lengths
    assert [step.invalid for step in episode.steps] == [None, None, "cut_off", "cut_off"]
    texts = [ENDING, "The other d", POLICY.decode(short[:7]), POLICY.decode(both[:7])]
    finishes = ["stop", "stop", "length", "length"]
    assert returned(episode) == [list(each) for each in zip(texts, finishes, lengths, strict=True)]


def test_an_overlong_prompt_is_refused_in_the_vendors_form_and_is_a_step_without_tokens(play: Play) -> None:
    episode, drawn = play("asks_too_much")
    refused, answered = episode.steps
    assert (refused.prompt_ids, refused.response_ids, refused.invalid) == ((), (), "prompt_too_long")
    assert refused.logprobs.tolist() == [] and refused.observation == "look"
    assert_as_drawn([answered], drawn)
    told = returned(episode)
    assert told["status"] == 400 and told["then"] == ENDING
    body = told["body"]
    assert (body["code"], body["type"]) == ("context_length_exceeded", "invalid_request_error")
    length = len(POLICY.encode([habits.TOO_LONG])[0])
    assert body["message"].startswith(f"prompt is too long: {length} tokens > {BUDGET} maximum")
    assert f"maximum context length is {BUDGET} tokens" in body["message"]
    record = (
        '{"content":"","calls":[],"thought":"","finish":"stop","prompt_tokens":0,"response_tokens":0,'
        f'"weights":[],"refused":"prompt_too_long: {body["message"]}"}}'
    )
    assert refused.action == record  # files of earlier versions hold the same


def test_a_stream_leaves_the_same_record_as_an_answer(play: Play) -> None:
    streamed, drawn = play("streams")
    assert_as_drawn(streamed.steps, drawn)
    whole, _ = play("answers_calls")
    assert streamed.steps[:-1] == whole.steps[:-1] and pairs(streamed.steps) == pairs(whole.steps)
    assert [said["content"] for said in returned(streamed)] == [said["content"] for said in returned(whole)]


def test_a_run_ends_at_the_first_request_with_tools_that_the_template_would_ignore() -> None:
    ignoring = chat_policy("{% for m in messages %}{{ m.content }}{% endfor %}")
    with playing(ignoring) as play, pytest.raises(PolicyError, match="its chat template does not show tools"):
        play("answers_calls")
