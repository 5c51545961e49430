"""Decoding with steps of a few shapes, tested on a CPU. Only CUDA's own recording, which is a parameter, is
replaced."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from skillpress.core.engine import Sampling
from skillpress.models.engines.local import engine as local
from skillpress.models.engines.local import static_cache, static_decoding
from skillpress.models.engines.local.engine import LocalEngine
from skillpress.models.engines.local.recorded_step import Record, RecordedStepError, Step
from skillpress.models.engines.local.room import DeviceMemory, MemoryRoom
from skillpress.models.engines.local.static_cache import Shape, why_not_static
from skillpress.models.engines.local.static_decoding import StaticDecoder
from skillpress.models.policy import Policy
from tests.support.models.families import family
from tests.support.models.sampled import assert_alike, policy_of, prompts_of
from tests.support.models.tiny import tiny_policy

SAMPLING = Sampling(max_new_tokens=8)


def as_it_is(step: Step) -> Step:
    """Do what CUDA does, without recording: the step's own function is replayed."""
    step()
    return step


def static_engine(policy: Policy, growing: bool = False, record: Record = as_it_is) -> LocalEngine:
    """The engine as it is on a GPU."""
    engine = LocalEngine(policy, growing)
    engine.decoder = StaticDecoder(engine.model, lambda: record)
    return engine


@pytest.fixture
def small_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(static_cache, "COLUMN_STEP", 8)


@given(st.integers(1, 5000), st.integers(1, 5000))
def test_a_shape_holds_what_it_is_asked_for_and_is_one_of_few(rows: int, columns: int) -> None:
    shape = Shape.holding(rows, columns)
    assert rows <= shape.rows < 2 * rows and shape.rows.bit_count() == 1
    assert columns < shape.columns <= columns + 256 and shape.columns % 256 == 0
    assert Shape.holding(rows + 1, columns).rows >= shape.rows
    assert shape.narrowed(1) == Shape(1, shape.columns)


@settings(deadline=None, max_examples=40)
@given(
    name=st.sampled_from(["Llama", "Qwen2", "Qwen3", "GPT2", "Granite", "Cohere"]),
    count=st.integers(1, 24), group=st.integers(1, 3), seed=st.integers(0, 99),
    new=st.sampled_from([1, 2, 12]), prefill=st.sampled_from([30, 1000]), step=st.sampled_from([4, 256]),
)  # fmt: skip
def test_the_same_is_sampled_as_with_a_cache_that_grows(
    name: str, count: int, group: int, seed: int, new: int, prefill: int, step: int
) -> None:
    """Prompts of mixed lengths, shared prompts, several passes, and rows that stop at different times."""
    policy, sampling = policy_of(name), Sampling(max_new_tokens=new)
    prompts = [prompt for prompt in prompts_of(count, 20, seed) for _ in range(group)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(local, "PREFILL_TOKENS", prefill)
        patch.setattr(static_cache, "COLUMN_STEP", step)
        expected = LocalEngine(policy).generate(prompts, sampling, range(len(prompts)))
        found = static_engine(policy).generate(prompts, sampling, range(len(prompts)))
    assert_alike(found, expected)


@pytest.mark.usefixtures("small_columns")
@pytest.mark.parametrize("name", ["Llama", "GPT2"])
def test_prompts_that_grow_go_on_from_what_static_rows_have_left(name: str) -> None:
    policy = policy_of(name)
    ours, plain = static_engine(policy, growing=True), LocalEngine(policy)
    prompts = [prompt for prompt in prompts_of(5) for _ in range(2)]
    grown, anew = [], []
    for step in range(4):
        seeds = range(100 * step, 100 * step + len(prompts))
        answers, expected = (engine.generate(prompts, SAMPLING, seeds) for engine in (ours, plain))
        assert_alike(answers, expected)
        grown += [answer.prefilled_tokens for answer in answers]
        anew += [answer.prefilled_tokens for answer in expected]
        prompts = [(*p, *a.token_ids, 5 + step) for p, a in zip(prompts, answers, strict=True)]
    assert sum(grown) < sum(anew)


@pytest.mark.usefixtures("small_columns")
def test_every_step_of_a_shape_works_on_the_same_addresses(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = static_engine(policy_of("Llama"))
    decoder = engine.decoder
    assert isinstance(decoder, StaticDecoder)
    seen: dict[Shape, set[tuple[int, ...]]] = {}
    plain_step = decoder.step

    def watched(shape: Shape, inputs: static_cache.StaticInputs, rows: int, column: int) -> None:
        plain_step(shape, inputs, rows, column)
        kept = [tensor for layer in inputs.layers for tensor in (layer.keys, layer.values)]
        kept += [inputs.tokens, inputs.positions, inputs.mask, inputs.column, inputs.logits]
        kept += list(engine.model.parameters())
        seen.setdefault(shape, set()).add(tuple(tensor.data_ptr() for tensor in kept))

    monkeypatch.setattr(decoder, "step", watched)
    for seed in range(3):
        engine.generate(prompts_of(20), SAMPLING, range(seed, seed + 20))
        engine.update_weights(policy_of("Llama").model.state_dict(), seed)
    assert len(seen) > 1, "rows have stopped"
    assert all(len(addresses) == 1 for addresses in seen.values())


def test_new_weights_are_sampled_from_without_another_recording() -> None:
    recordings = 0

    def count(step: Step) -> Step:
        nonlocal recordings
        recordings += 1
        return step

    first, second, prompts = tiny_policy(0), tiny_policy(1), prompts_of(8)
    engine = static_engine(first, record=count)
    engine.generate(prompts, SAMPLING, range(8))
    before = recordings
    engine.update_weights(second.model.state_dict(), 1)
    found = engine.generate(prompts, SAMPLING, range(8))
    assert_alike(found, LocalEngine(second).generate(prompts, SAMPLING, range(8)))
    again = recordings
    engine.generate(prompts, SAMPLING, range(8))
    assert recordings == again and again <= before + 4, "at most the shapes that had not come before"
    engine.sleep()
    assert_alike(engine.generate(prompts, SAMPLING, range(8)), found)
    assert recordings > again, "sleep has given memory and recordings back"


def test_recorded_steps_stay_during_updates_where_the_learner_does_not_need_their_memory() -> None:
    recordings = 0

    def count(step: Step) -> Step:
        nonlocal recordings
        recordings += 1
        return step

    first, prompts = tiny_policy(0), prompts_of(8)
    engine = LocalEngine(first)
    roomy = DeviceMemory(free=100, reserved=50, allocated=40, pooled=0, peak=60)
    engine.decoder = StaticDecoder(engine.model, lambda: count, MemoryRoom(lambda: roomy))
    recorded = []
    for seed in range(4):
        second = tiny_policy(seed)
        engine.update_weights(second.model.state_dict(), seed)
        found = engine.generate(prompts, SAMPLING, range(8))
        assert_alike(found, LocalEngine(second).generate(prompts, SAMPLING, range(8)))
        again = recordings
        engine.sleep()
        engine.update_weights(second.model.state_dict(), seed)
        assert engine.generate(prompts, SAMPLING, range(8)) == found
        recorded.append(recordings > again)
    assert recorded == [True, True, False, False], "two updates are measured"


def test_what_stands_in_memory_from_before_does_not_reach_a_response() -> None:
    engine = static_engine(policy_of("Llama"))
    prompts = prompts_of(9)
    expected = engine.generate(prompts, SAMPLING, range(9))
    assert isinstance(engine.decoder, StaticDecoder)
    assert engine.decoder._memory is not None
    with torch.inference_mode():
        for stack in engine.decoder._memory._stacks:
            stack.fill_(torch.nan)
    assert engine.generate(prompts, SAMPLING, range(9)) == expected


@pytest.mark.usefixtures("small_columns")
def test_few_recorded_steps_are_kept_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(static_decoding, "MOST_STEPS", 2)
    policy, prompts = policy_of("Llama"), prompts_of(30)
    engine = static_engine(policy)
    found = engine.generate(prompts, SAMPLING, range(30))
    assert_alike(found, LocalEngine(policy).generate(prompts, SAMPLING, range(30)))
    assert isinstance(engine.decoder, StaticDecoder)
    assert len(engine.decoder._steps) <= 2


def nothing_is_done(step: Step) -> Step:
    return lambda: None


def frozen(name: str) -> Callable[[StaticDecoder], Record]:
    """A recording in which one of its inputs stays as it was when recorded."""

    def recorder(decoder: StaticDecoder) -> Record:
        def record(step: Step) -> Step:
            assert decoder._memory is not None
            tensor = getattr(decoder._memory, f"_{name}")
            then = tensor.clone()

            def replay() -> None:
                now = tensor.clone()
                tensor.copy_(then)
                step()
                tensor.copy_(now)

            return replay

        return record

    return recorder


@pytest.mark.parametrize("name", ["tokens", "positions", "column", "mask"])
def test_a_recording_that_keeps_a_number_of_its_moment_is_refused(name: str) -> None:
    engine = static_engine(policy_of("Llama"))
    decoder = StaticDecoder(engine.model, lambda: frozen(name)(decoder))
    engine.decoder = decoder
    with pytest.raises(RecordedStepError, match=r"LlamaForCausalLM \(8 rows, 256 columns.*vllm"):
        engine.generate(prompts_of(12), SAMPLING, range(12))


def test_a_recording_that_does_nothing_is_refused() -> None:
    engine = static_engine(policy_of("Llama"), record=nothing_is_done)
    with pytest.raises(RecordedStepError, match="Nothing was sampled"):
        engine.generate(prompts_of(12), SAMPLING, range(12))


def test_a_model_that_reads_the_steps_mask_otherwise_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """The step is compared with the model with a growing cache, not with itself."""
    engine = static_engine(policy_of("Llama"))
    forward = engine.model.forward

    def heedless(*arguments: object, attention_mask: torch.Tensor | None, **named: object) -> object:
        if attention_mask is not None and attention_mask.ndim == 4:
            attention_mask = torch.ones_like(attention_mask)
        return forward(*arguments, attention_mask=attention_mask, **named)

    monkeypatch.setattr(engine.model, "forward", heedless)
    with pytest.raises(RecordedStepError):
        engine.generate(prompts_of(12), SAMPLING, range(12))


@pytest.mark.parametrize("name", ["Llama", "Qwen2", "Qwen3", "GPT2"])
def test_models_of_plain_attention_decode_in_static_memory(name: str) -> None:
    assert why_not_static(LocalEngine(policy_of(name)).model) is None


@pytest.mark.parametrize("name", ["Mistral", "Gemma3Text", "Cohere2"])
def test_sliding_windows_do_not(name: str) -> None:
    assert "sliding windows" in str(why_not_static(LocalEngine(policy_of(name)).model))


def test_attention_and_position_embeddings_that_a_recording_cannot_hold_are_named() -> None:
    scaled = {"rope_type": "dynamic", "rope_theta": 10000.0, "factor": 2.0}
    assert "position embeddings" in str(why_not_static(family("Llama", rope_parameters=scaled)))
    assert "'eager'" in str(why_not_static(family("Llama", attn_implementation="eager")))


def test_on_a_cpu_the_cache_grows() -> None:
    assert LocalEngine(tiny_policy()).decoder.name == "growing"
