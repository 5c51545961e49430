"""Engine ``server`` with servers on this machine: what it samples, and what it does when they fail."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from typing import Literal

import numpy as np
import pytest

from skillpress.core.engine import Completion, Request, Sampling
from skillpress.core.errors import UserError
from skillpress.core.interface import ScratchVocabulary
from skillpress.core.trajectory import WeightSpan
from skillpress.models.engines.checks import EngineError
from skillpress.models.engines.generate import generate
from skillpress.models.engines.parameters import EngineDemand
from skillpress.models.engines.server import VLLM, ServerParameters
from skillpress.models.engines.server.engine import ServerEngine
from skillpress.models.policy import Policy
from skillpress.models.policy.scoring import ResponseScorer, pack_responses
from skillpress.models.policy.scratch import build_scratch_policy
from skillpress.rollouts.workers.distributed import Ranks
from tests.support.models.protocol_server import Answer, ProtocolServer
from tests.support.models.tiny import tiny_policy

SAMPLING = Sampling(max_new_tokens=8)
PROMPTS = [(5 + row, 6, 7) for row in range(30)]
DEMAND = EngineDemand(longest=28, slots=32, ranks=Ranks())

PATIENCE = 300.0
"""Maximum wait for something that takes a moment on an idle machine."""

MakeServers = Callable[[int], list[ProtocolServer]]
Connect = Callable[..., ServerEngine]


@pytest.fixture
def servers() -> Iterator[MakeServers]:
    """``servers(2)``: running servers, started with other weights than any test's policy."""
    with ExitStack() as stack:
        yield lambda count: [
            stack.enter_context(ProtocolServer(tiny_policy(seed=9), longest=28)) for _ in range(count)
        ]


@pytest.fixture
def connect() -> Iterator[Connect]:
    """``connect(servers, policy)``: an engine."""
    with ExitStack() as stack:

        def connect(
            found: Sequence[ProtocolServer],
            policy: Policy | None = None,
            seconds: float = PATIENCE,
            transfer: Literal["auto", "http", "collective"] = "auto",
        ) -> ServerEngine:
            urls = [server.url for server in found]
            section = ServerParameters(
                name="server", urls=urls, answer_seconds=seconds, transfer=transfer, seeded=True
            )
            engine = section.make(policy or tiny_policy(), DEMAND)
            assert isinstance(engine, ServerEngine)
            stack.callback(engine.close)
            return engine

        yield connect


def largest_difference(policy: Policy, completions: Sequence[Completion]) -> float:
    """The largest difference between the learner's scores of the responses and the engine's
    log-probabilities."""
    pairs = [(prompt, c.token_ids) for prompt, c in zip(PROMPTS, completions, strict=True)]
    scored, _ = ResponseScorer(policy.model)(pack_responses(pairs), 1.0)
    sampled = [logprob for completion in completions for logprob in completion.logprobs]
    return float(np.abs(scored.detach().numpy() - sampled).max())


def hold_until_all_have_come(servers: Sequence[ProtocolServer]) -> threading.Event:
    """The servers answer nothing before they have received all prompts."""
    all_have_come = threading.Event()

    def hold(server: ProtocolServer) -> None:
        if sum(len(each.asked) for each in servers) >= len(PROMPTS):
            all_have_come.set()
        all_have_come.wait(PATIENCE)

    for server in servers:
        server.before_answer = hold
    return all_have_come


def test_responses_are_sampled_from_the_policy_and_from_every_update_of_it(
    servers: MakeServers, connect: Connect
) -> None:
    first, second = tiny_policy(0), tiny_policy(1)
    engine = connect(servers(2), first)
    before = generate(engine, PROMPTS, SAMPLING, range(30))
    assert largest_difference(first, before) < 1e-5
    engine.update_weights(second.model.state_dict(), 3)
    after = generate(engine, PROMPTS, SAMPLING, range(30))
    assert largest_difference(second, after) < 1e-5 < largest_difference(first, after)
    assert {c.weight_spans for c in after} == {(WeightSpan(3, 0, len(c.token_ids)),) for c in after}


def test_completions_come_by_key_and_each_once(servers: MakeServers, connect: Connect) -> None:
    engine = connect(servers(1))
    engine.submit([Request(key, PROMPTS[key % 30], SAMPLING, key) for key in (70, 3, 12)])
    found: list[int] = []
    while len(found) < 3:
        found += [key for key, _ in engine.completed(PATIENCE)]
    assert sorted(found) == [3, 12, 70]
    assert engine.completed(0.0) == []


def test_requests_are_shared_out_evenly(servers: MakeServers, connect: Connect) -> None:
    found = servers(3)
    hold_until_all_have_come(found)
    generate(connect(found), PROMPTS, SAMPLING, range(30))
    assert [len(server.asked) for server in found] == [10, 10, 10]


def test_what_a_dying_server_was_asked_is_answered_by_the_others_once(
    servers: MakeServers, connect: Connect, caplog: pytest.LogCaptureFixture
) -> None:
    found = servers(2)
    engine, policy = connect(found), tiny_policy()
    all_have_come = hold_until_all_have_come(found)
    found[0].slowness = PATIENCE

    def kill() -> None:
        all_have_come.wait(PATIENCE)
        found[0].die()

    killer = threading.Thread(target=kill)
    killer.start()
    with caplog.at_level(logging.WARNING):
        completions = generate(engine, PROMPTS, SAMPLING, range(30))
    killer.join()
    assert (len(found[0].asked), len(found[1].asked)) == (15, 30)
    assert largest_difference(policy, completions) < 1e-5
    assert f"{found[0].url} is left out" in caplog.text


def test_without_servers_the_error_names_server_request_and_remedy(
    servers: MakeServers, connect: Connect
) -> None:
    (server,) = servers(1)
    engine = connect([server])
    server.die()
    engine.submit([Request(17, PROMPTS[0], SAMPLING, 0)])
    with pytest.raises(EngineError, match="request 17") as caught:
        engine.completed(PATIENCE)
    assert server.url in str(caught.value) and "skillpress serve-model" in str(caught.value)


def test_a_server_that_is_silent_is_given_up(servers: MakeServers, connect: Connect) -> None:
    found = servers(1)
    engine = connect(found, seconds=1.0)
    found[0].slowness = 30.0
    engine.submit([Request(4, PROMPTS[0], SAMPLING, 0)])
    with pytest.raises(EngineError, match=r"request 4 .* no answer within 1 seconds"):
        engine.completed(PATIENCE)


def test_a_server_that_was_started_again_is_left_out_until_the_next_update(
    servers: MakeServers, connect: Connect
) -> None:
    found = servers(2)
    engine = connect(found)
    found[0].weights_name = "those of its start"
    completions = generate(engine, PROMPTS, SAMPLING, range(30))
    assert {c.weight_spans[0].version for c in completions} == {0}
    assert len(found[1].asked) == 30
    asked = len(found[0].asked)
    engine.update_weights(tiny_policy(1).model.state_dict(), 1)
    generate(engine, PROMPTS, SAMPLING, range(30))
    assert len(found[0].asked) > asked


def test_a_dead_server_does_not_stop_an_update(servers: MakeServers, connect: Connect) -> None:
    found = servers(2)
    engine = connect(found)
    found[0].die()
    engine.update_weights(tiny_policy(1).model.state_dict(), 1)
    assert len(generate(engine, PROMPTS, SAMPLING, range(30))) == 30
    found[1].die()
    with pytest.raises(EngineError, match="weights 2: no server accepted them"):
        engine.update_weights(tiny_policy(1).model.state_dict(), 2)


def test_two_runs_with_one_server_find_out(servers: MakeServers, connect: Connect) -> None:
    found = servers(1)
    one, _other = connect(found), connect(found)
    one.submit([Request(0, PROMPTS[0], SAMPLING, 0)])
    with pytest.raises(EngineError, match="also serves another run"):
        one.completed(PATIENCE)


def without_a_logprob(answer: Answer) -> Answer:
    answer["choices"][0]["logprobs"]["content"][0]["logprob"] = -9999.0
    return answer


def shortened(answer: Answer) -> Answer:
    choice = answer["choices"][0]
    choice |= {"token_ids": choice["token_ids"][:1], "finish_reason": "length"}
    choice["logprobs"]["content"] = choice["logprobs"]["content"][:1]
    return answer


def aborted(answer: Answer) -> Answer:
    answer["choices"][0]["finish_reason"] = "abort"
    return answer


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (without_a_logprob, "has no log-probability"),
        (shortened, "cut after 1 tokens; 8 were requested"),
        (aborted, "not finished"),
        (lambda answer: {"choices": []}, "lacks what vLLM"),
    ],
)
def test_an_answer_that_training_cannot_rest_on_is_refused(
    change: Callable[[Answer], Answer], reason: str, servers: MakeServers, connect: Connect
) -> None:
    found = servers(1)
    engine = connect(found)
    found[0].change = change
    engine.submit([Request(0, PROMPTS[0], SAMPLING, 0)])
    with pytest.raises(EngineError, match=reason):
        engine.completed(PATIENCE)


@pytest.mark.parametrize("prompt", [(), (5, -1), (5, 10_000), (5,) * 21])
def test_a_wrong_prompt_is_never_sent(
    prompt: tuple[int, ...], servers: MakeServers, connect: Connect
) -> None:
    found = servers(1)
    with pytest.raises(ValueError, match="request 8"):
        connect(found).submit([Request(8, prompt, SAMPLING, 0)])
    assert not found[0].asked


def test_open_responses_continue_under_new_weights_and_say_which_drew_which_token(
    servers: MakeServers, connect: Connect
) -> None:
    """Every response has three tokens when the weights change. Log-probabilities are those of the weights
    that each span names, given the tokens before it."""
    first, second = tiny_policy(0), tiny_policy(1)
    found = servers(2)
    engine = connect(found, first)
    paused, resume = threading.Barrier(len(PROMPTS) + 1), threading.Event()

    def hold(server: ProtocolServer, drawn: int) -> None:
        if drawn == 3 and not resume.is_set():
            paused.wait(PATIENCE)
            resume.wait(PATIENCE)

    for server in found:
        server.between_tokens = hold
    long = Sampling(max_new_tokens=8)
    policy_stops = first.stop_token_ids
    engine.submit([Request(key, prompt, long, 7 * key) for key, prompt in enumerate(PROMPTS)])
    paused.wait(PATIENCE)
    engine.update_weights(second.model.state_dict(), 1)
    engine.submit([Request(99, PROMPTS[0], long, 99)])
    resume.set()
    answers: dict[int, Completion] = {}
    while len(answers) < len(PROMPTS) + 1:
        answers |= dict(engine.completed(PATIENCE))
    assert {span.version for span in answers.pop(99).weight_spans} == {1}
    for key, answer in answers.items():
        length = len(answer.token_ids)
        assert not set(answer.token_ids[:3]) & set(policy_stops)
        assert answer.weight_spans == (WeightSpan(0, 0, 3), WeightSpan(1, 3, length))
        for policy, span in zip((first, second), answer.weight_spans, strict=True):
            scored, _ = ResponseScorer(policy.model)(pack_responses([(PROMPTS[key], answer.token_ids)]), 1.0)
            difference = scored.detach().numpy() - answer.logprobs
            assert np.abs(difference[span.start : span.end]).max() < 1e-5


def test_what_is_sent_while_the_weights_change_may_be_answered_by_either(
    servers: MakeServers, connect: Connect
) -> None:
    """One server has the new weights, the other is still being given them."""
    found = servers(2)
    engine = connect(found)
    given, go_on = threading.Event(), threading.Event()

    def wait(server: ProtocolServer) -> None:
        given.set()
        go_on.wait(PATIENCE)

    found[1].before_stage = wait
    updating = threading.Thread(target=lambda: engine.update_weights(tiny_policy(1).model.state_dict(), 1))
    updating.start()
    given.wait(PATIENCE)
    while not found[0].weights_name.endswith("-1"):
        threading.Event().wait(0.01)
    versions = {c.weight_spans[0].version for c in generate(engine, PROMPTS, SAMPLING, range(30))}
    go_on.set()
    updating.join(PATIENCE)
    assert versions == {0, 1}
    after = generate(engine, PROMPTS, SAMPLING, range(30))
    assert {c.weight_spans[0].version for c in after} == {1}
    assert [server.lost for server in engine._pool.servers] == [None, None]


def test_what_is_aborted_is_never_returned(servers: MakeServers, connect: Connect) -> None:
    found = servers(1)
    found[0].slowness = 0.3
    engine = connect(found)
    engine.submit([Request(key, PROMPTS[key], SAMPLING, key) for key in range(5)])
    engine.abort()
    engine.submit([Request(2, PROMPTS[9], SAMPLING, 9)])
    (answered,) = engine.completed(PATIENCE)
    assert answered == (2, generate(engine, [PROMPTS[9]], SAMPLING, [9])[0])
    assert engine.completed(1.0) == []


def test_at_the_start_every_server_must_be_there_and_fit(servers: MakeServers, connect: Connect) -> None:
    found = servers(2)
    with pytest.raises(UserError, match="the weights are another model's"):
        connect(found[:1], wider_policy())
    found[0].longest = 27
    with pytest.raises(UserError, match=r"accepts 27 tokens .* needs 28: start it with --longest 28"):
        connect(found[:1])
    found[0].dtype = "bfloat16"
    with pytest.raises(UserError, match=r"samples in bfloat16, but policy.dtype is float32: .* float32"):
        connect(found[:1])
    found[0].vllm = "0.1.2"
    with pytest.raises(UserError, match=f"runs vLLM 0.1.2; results are recorded as those of {VLLM}"):
        connect(found[:1])
    found[1].die()
    with pytest.raises(UserError, match=f"{found[1].url} is not a vLLM server that answers"):
        connect(found[1:])


def wider_policy() -> Policy:
    """A policy of another shape than the servers'."""
    words = tuple(map(str, range(50)))
    vocabulary = ScratchVocabulary((*words, "stop"), ("stop",), {}, state_words=12)
    return build_scratch_policy(vocabulary, 32, 2, 2, 16, 0)


def test_only_the_policys_own_parameters_are_sent(servers: MakeServers, connect: Connect) -> None:
    engine = connect(servers(1))
    weights = dict(tiny_policy().model.state_dict())
    head = weights.pop("lm_head.weight")
    with pytest.raises(ValueError, match=r"missing \['lm_head.weight'\]"):
        engine.update_weights(weights, 1)
    with pytest.raises(ValueError, match=r"another shape \['lm_head.weight'\]"):
        engine.update_weights({**weights, "lm_head.weight": head[:-1]}, 1)


def test_weights_travel_by_collectives_where_they_are_asked_for(
    servers: MakeServers, connect: Connect
) -> None:
    found, second = servers(2), tiny_policy(1)
    engine = connect(found, transfer="collective")
    engine.update_weights(second.model.state_dict(), 1)
    assert largest_difference(second, generate(engine, PROMPTS, SAMPLING, range(30))) < 1e-5
    assert [server.transfers for server in found] == [["collective"] * 2] * 2


def test_a_server_that_joins_no_group_gets_its_weights_over_http(
    servers: MakeServers, connect: Connect, caplog: pytest.LogCaptureFixture
) -> None:
    found, second = servers(2), tiny_policy(1)
    found[0].joins = False
    with caplog.at_level(logging.WARNING):
        engine = connect(found, transfer="collective")
    assert f"{found[0].url} gets weights over HTTP from now on" in caplog.text
    engine.update_weights(second.model.state_dict(), 1)
    assert largest_difference(second, generate(engine, PROMPTS, SAMPLING, range(30))) < 1e-5
    assert [server.transfers for server in found] == [["http"] * 2, ["collective"] * 2]


def test_a_group_that_fails_is_replaced_by_http_within_the_same_update(
    servers: MakeServers, connect: Connect
) -> None:
    found, second = servers(1), tiny_policy(1)
    engine = connect(found, transfer="collective")
    assert found[0].link is not None
    found[0].link.end()
    engine.update_weights(second.model.state_dict(), 1)
    assert largest_difference(second, generate(engine, PROMPTS, SAMPLING, range(30))) < 1e-5
    assert found[0].transfers == ["collective", "http"]


def test_a_server_that_was_lost_joins_a_new_group(servers: MakeServers, connect: Connect) -> None:
    found = servers(2)
    engine = connect(found, transfer="collective")
    found[0].weights_name = "those of its start"
    generate(engine, PROMPTS, SAMPLING, range(30))  # which loses it
    found[0].link = None
    engine.update_weights(tiny_policy(1).model.state_dict(), 1)
    assert [server.transfers for server in found] == [["collective"] * 2] * 2
