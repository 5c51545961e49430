"""A dry run: whether an experiment fits, which stages would run, memory, episodes and updates."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from transformers import AutoModelForCausalLM, LlamaConfig, Qwen2Config, Qwen3Config

from skillpress.core.registry import ENGINES
from skillpress.core.sections import ByName
from skillpress.core.yaml_files import write_yaml
from skillpress.experiment.estimate import BUCKET, UNUSED, memory_by_phase, training_memory
from skillpress.experiment.model_shapes import KNOWN_SHAPES, ModelShape
from skillpress.experiment.params import Params, load_params, read_yaml
from skillpress.experiment.work import episodes, updates_per_step
from skillpress.models.engines.local.batches import CACHE_BYTES
from skillpress.pipeline.graph import read_stages
from skillpress.pipeline.reproduce import __main__ as reproduce
from skillpress.pipeline.reproduce import dry_run
from skillpress.pipeline.whole_run import outdated
from skillpress.training.loop.optimizer import read_configuration
from skillpress.training.lora_parameters import LoraParameters
from tests.support.models.folders import gemma3

ROOT = Path(__file__).parents[4]
ENGINE = ByName(ENGINES, "engine.name")


def test_a_value_head_adds_its_weights_gradients_and_moments_and_no_more() -> None:
    """One number per hidden unit, three for the time and a bias, of 4 bytes; two processes share moments."""
    shape, configuration = KNOWN_SHAPES["smollm2-135m"], read_configuration("zero1_fp32")
    plain, valued = (
        training_memory(load_params(ROOT / "params.yaml", *overlays), shape, configuration)
        for overlays in ([], [ROOT / "params" / "ppo.yaml"])
    )
    more = {part: valued[part] - plain[part] for part in plain if valued[part] != plain[part]}
    parts = ("learner: weights", "learner: gradients", "learner: AdamW moments", BUCKET)
    size = 4 * (576 + 3 + 1)
    assert more == {**dict.fromkeys(parts, size), UNUSED: -size}, "and fill more of DeepSpeed's bucket"


def paper(environment: str, *over: str) -> Params:
    names = (f"paper_{environment}", *over)
    return load_params(ROOT / "params.yaml", *(ROOT / "params" / f"{name}.yaml" for name in names))


@pytest.mark.parametrize(
    ("name", "config"),
    [
        (
            "Qwen/Qwen2.5-1.5B-Instruct",
            Qwen2Config(
                hidden_size=1536, num_hidden_layers=28, num_attention_heads=12, num_key_value_heads=2,
                intermediate_size=8960, vocab_size=151_936, tie_word_embeddings=True,
            ),
        ),
        (
            "Qwen/Qwen2.5-7B-Instruct",
            Qwen2Config(
                hidden_size=3584, num_hidden_layers=28, num_attention_heads=28, num_key_value_heads=4,
                intermediate_size=18_944, vocab_size=152_064, tie_word_embeddings=False,
            ),
        ),
        (
            "Qwen/Qwen3-1.7B",
            Qwen3Config(
                hidden_size=2048, num_hidden_layers=28, num_attention_heads=16, num_key_value_heads=8,
                head_dim=128, intermediate_size=6144, vocab_size=151_936, tie_word_embeddings=True,
            ),
        ),
        (
            "Qwen/Qwen2.5-32B-Instruct",
            Qwen2Config(
                hidden_size=5120, num_hidden_layers=64, num_attention_heads=40, num_key_value_heads=8,
                intermediate_size=27_648, vocab_size=152_064, tie_word_embeddings=False,
            ),
        ),
        (
            "Qwen/Qwen3-4B",
            Qwen3Config(
                hidden_size=2560, num_hidden_layers=36, num_attention_heads=32, num_key_value_heads=8,
                head_dim=128, intermediate_size=9728, vocab_size=151_936, tie_word_embeddings=True,
            ),
        ),
        (
            "smollm2-135m",
            LlamaConfig(
                hidden_size=576, num_hidden_layers=30, num_attention_heads=9, num_key_value_heads=3,
                intermediate_size=1536, vocab_size=49_152, tie_word_embeddings=True,
            ),
        ),
    ],
)  # fmt: skip
def test_the_table_of_known_models_agrees_with_their_published_architectures(
    name: str, config: Qwen2Config
) -> None:
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(config)
    heads = config.num_attention_heads
    assert KNOWN_SHAPES[name] == ModelShape(
        sum(weight.numel() for weight in model.parameters()),
        config.num_hidden_layers,
        config.hidden_size,
        config.num_key_value_heads,
        getattr(config, "head_dim", None) or config.hidden_size // heads,
        config.vocab_size,
        heads,
        config.intermediate_size,
    )


def test_a_multimodal_models_shape_is_its_language_models() -> None:
    shape = dry_run.shape_of(gemma3(), 1000)
    assert shape == dry_run.shape_of(gemma3().get_text_config(), 1000)
    assert (shape.layers, shape.hidden, shape.kv_heads, shape.head_size, shape.vocabulary) == (
        2,
        16,
        1,
        8,
        280,
    )


def test_episodes_and_updates_are_counted_in_full() -> None:
    """Computed by hand: ALFWorld, 300 steps of 16 x 8 episodes of 50 steps in minibatches of 256; SC@7 on 274
    games."""
    params = paper("alfworld")
    parts = episodes(params)
    assert parts["train_policy"] == 38_400 and parts["evaluate_policy"] == 1918
    assert updates_per_step(params) == 16 * 8 * 50 // 256
    section = params.training.model_copy(update={"minibatch_size": 0, "minibatches": 3})
    assert updates_per_step(params.model_copy(update={"training": section})) == 3


def test_no_more_tasks_are_played_than_there_are() -> None:
    params = load_params(ROOT / "params.yaml")
    few = params.model_copy(update={"tasks": params.tasks.model_copy(update={"train": 40})})
    assert episodes(few)["collect_rollouts"] == 40 * params.rollouts.per_task
    every = params.model_copy(update={"rollouts": params.rollouts.model_copy(update={"tasks": "all"})})
    assert episodes(every)["collect_rollouts"] == params.tasks.train * params.rollouts.per_task


def test_the_best_step_costs_a_pass_over_the_validation_tasks_for_every_checkpoint() -> None:
    params = load_params(ROOT / "params.yaml")
    best = params.training.model_copy(update={"keep": "best", "steps": 25, "checkpoint_every": 10})
    last = best.model_copy(update={"keep": "last"})
    some = params.tasks.model_copy(update={"validation": 7})
    counted = [
        episodes(params.model_copy(update={"training": section, "tasks": some})).get(
            "train_policy: validation"
        )
        for section in (best, last)
    ]
    assert counted == [3 * 7, None], "after steps 10, 20 and 25"


def test_a_scratch_model_is_counted(capsys: pytest.CaptureFixture[str]) -> None:
    assert reproduce.main(["--dry-run", "--params", str(ROOT / "params" / "smoke.yaml")]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("fits this machine's ") and "(built from the parameters)" in shown
    assert "\nupdates: 4 training steps of at most " in shown


def test_the_stages_that_would_run_are_those_that_the_workspace_lacks(tmp_path: Path) -> None:
    """A lock of DVC that has the tasks of these parameters, and their file."""
    values = read_yaml(ROOT / "params.yaml")
    every = [stage for stage in read_stages(ROOT / "dvc.yaml") if stage.parameters]
    assert [stage.name for stage in outdated(every, values, tmp_path / "none")] == [
        each.name for each in every
    ]
    tasks = every[0] = replace(every[0], parameters=("seed", "reward"))
    former = {"shaping_weight": "efficiency"}  # the lock is of before this key was renamed
    read = {"seed": 0, "reward": {former.get(key, key): value for key, value in values["reward"].items()}}
    lock = {"params": {"params.yaml": read}, "deps": [], "outs": []}
    (tmp_path / "dvc.lock").write_text(write_yaml({"stages": {tasks.name: lock}}))
    for output in tasks.outputs:
        (tmp_path / output).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / output).touch()
    assert outdated(every, values, tmp_path) == every[1:]
    assert outdated(every, {**values, "seed": 7}, tmp_path) == every


def test_zero_stages_share_what_they_say() -> None:
    """1000 parameters on two processes: 2 bytes of weight, 2 and 4 of gradient, 4 of copy, 8 of moments."""
    shape = ModelShape(
        1000, layers=1, hidden=8, kv_heads=1, head_size=8, vocabulary=10, heads=1, intermediate=8
    )
    params = paper("alfworld", "local")
    two = params.model_copy(update={"processes": 2})
    parts = ("learner: weights", "learner: gradients", "learner: float32 copy", "learner: AdamW moments")
    expected = {
        "zero1_fp32": (4000, 4000, 0, 4000),
        "zero2_bf16": (2000, 3000, 2000, 4000),
        "zero3_bf16": (1000, 3000, 2000, 4000),
    }
    for name, sizes in expected.items():
        memory = training_memory(two, shape, read_configuration(name))
        assert tuple(memory[part] for part in parts) == sizes
        assert memory["engine: weights"] == 2000
        assert memory["engine: keys and values"] == two.sampling.slots * 2560 * (2 * 8) * 2
        assert memory["reference: weights"] == (4000 if name == "zero1_fp32" else 2000), "no stage shares it"
        assert memory["handover: gathered weights"] == (2000 if name == "zero3_bf16" else 0)


def test_low_rank_changes_alone_have_gradients_and_moments_and_need_no_reference() -> None:
    """Computed by hand: rank 2; queries 8 to 8, keys and values 8 to 4, output 8 to 8, layers of 8 and 16."""
    shape = ModelShape(
        1000, layers=3, hidden=8, kv_heads=1, head_size=4, vocabulary=10, heads=2, intermediate=16
    )
    params = paper("alfworld")
    section = params.training.model_copy(update={"lora": LoraParameters(rank=2, alpha=4)})
    params = params.model_copy(update={"training": section, "processes": 1})
    changes = 2 * 3 * (16 + 12 + 12 + 16 + 3 * 24)
    memory = training_memory(params, shape, read_configuration("zero2_bf16"))
    assert memory["learner: weights"] == 2 * (1000 + changes)
    assert memory["learner: gradients"] == 6 * changes
    assert memory["learner: float32 copy"] == 4 * changes
    assert memory["learner: AdamW moments"] == 8 * changes
    assert memory["reference: weights"] == 0 < memory["reference: one pass"], "the KL term is still there"
    assert memory["handover: merged weights"] == 2 * 3 * (64 + 32 + 32 + 64 + 3 * 128)


def test_a_gpu_holds_the_reference_only_while_it_scores() -> None:
    parts = training_memory(
        paper("alfworld"),
        KNOWN_SHAPES["Qwen/Qwen2.5-1.5B-Instruct"],
        read_configuration("zero3_bf16"),
    )
    gpu, cpu = (memory_by_phase(parts, sleeps=False, on_gpu=place) for place in (True, False))
    saved = {phase: cpu[phase] - gpu[phase] for phase in gpu}
    assert saved.pop("scoring by the reference") == 0
    assert set(saved.values()) == {parts["reference: weights"]}
    used = ("learner: ", "engine: weights", "batch: ", "update: ")
    assert gpu["updating"] == sum(size for part, size in parts.items() if part.startswith(used))
    assert gpu["scoring by the reference"] < gpu["updating"], "nothing is kept for a way back"
    beside = memory_by_phase(parts, sleeps=False, on_gpu=True, beside=True)
    assert beside["updating"] == gpu["updating"] + parts["engine: keys and values"]
    assert beside["sampling"] == gpu["sampling"]


def test_without_a_kl_term_there_is_no_reference() -> None:
    params = load_params(ROOT / "params.yaml")
    parts = training_memory(params, KNOWN_SHAPES["smollm2-135m"], read_configuration("zero1_fp32"))
    assert parts["reference: weights"] == parts["reference: one pass"] == 0


def test_flash_attention_shares_no_prompts_and_has_no_masks() -> None:
    params = paper("alfworld")
    flash = params.model_copy(
        update={"policy": params.policy.model_copy(update={"attention": "flash_attention_2"})}
    )
    shape, deepspeed = KNOWN_SHAPES["Qwen/Qwen2.5-1.5B-Instruct"], read_configuration("zero3_bf16")
    before, found = (training_memory(each, shape, deepspeed) for each in (params, flash))
    gone = {part for part in before if part.startswith("batch: ")} - set(found)
    assert gone and all("mask" in part or "fanned out" in part for part in gone)
    assert found["batch: activations"] == before["batch: activations"]


QWEN = KNOWN_SHAPES["Qwen/Qwen2.5-1.5B-Instruct"]
ROW = 2560 * 2 * 28 * 2 * 128 * 2
"""Bytes of keys and values: 2560 tokens, key and value, 28 layers, 2 heads of 128, bfloat16."""


def with_engine(**section: object) -> dict[str, int]:
    """The memory of the paper's ALFWorld with another engine."""
    params = paper("alfworld").model_copy(update={"engine": ENGINE.read(section)})
    return training_memory(params, QWEN, read_configuration("zero3_bf16"))


def test_the_local_engine_holds_the_keys_and_values_of_all_slots_up_to_its_bound() -> None:
    local = ENGINE.read({"name": "local"})
    assert local.memory(weights=7, rows=10, row=ROW, growing=False).cache == 10 * ROW
    assert local.memory(weights=7, rows=10**6, row=ROW, growing=False).cache == CACHE_BYTES
    assert local.memory(weights=7, rows=10, row=2 * CACHE_BYTES, growing=False).cache == 2 * CACHE_BYTES, (
        "a row at least"
    )


def test_vllm_takes_its_cache_at_once_and_gives_a_gpu_all_back_while_the_learner_updates() -> None:
    """It wakes beside what torch keeps of an update, of which a CPU keeps nothing."""
    parts = with_engine(name="vllm", cache_gib=2.0)
    assert parts["engine: keys and values"] == 2 * 2**30
    whole = parts["engine: weights"] + parts["engine: keys and values"]
    awake, gpu = (memory_by_phase(parts, sleeps, on_gpu=True) for sleeps in (False, True))
    cpu = memory_by_phase(parts, sleeps=True, on_gpu=False)
    assert awake["updating"] - gpu["updating"] == parts["engine: weights"]
    assert cpu["updating"] - gpu["updating"] == whole + parts["reference: weights"]
    state = sum(size for part, size in parts.items() if part.startswith("learner: "))
    assert gpu["sampling"] == awake["sampling"] + gpu["updating"] - state


def test_servers_take_nothing_of_the_learners_memory() -> None:
    parts = with_engine(name="server", urls=["http://a:1"], answer_seconds=60.0)
    assert parts["engine: weights"] == parts["engine: keys and values"] == 0


@pytest.mark.parametrize(
    ("environment", "episodes"),
    [
        ("alfworld", "38,400"),
        ("textworld_cooking", "38,400"),
        ("countdown", "38,400"),
        ("notebook_qa", "480,000"),
    ],
)
def test_the_papers_experiments_can_be_dry_run_here(
    environment: str, episodes: str, capsys: pytest.CaptureFixture[str]
) -> None:
    overlay = str(ROOT / "params" / f"paper_{environment}.yaml")
    assert reproduce.main(["--dry-run", "--params", overlay]) == 0
    shown = capsys.readouterr().out
    assert f"name: {environment}" in shown
    assert f"{episodes} episodes" in shown
    assert "parameters (from the table of known models)" in shown


@pytest.mark.parametrize("environment", ["countdown", "alfworld", "textworld_cooking"])
@pytest.mark.parametrize("method", ["grpo", "segcost"])
def test_smollm2_is_laid_over_every_environment_and_under_every_method(
    environment: str, method: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The default experiment plays Countdown, which has no overlay."""
    names = [*([environment] if environment != "countdown" else []), "smollm2", method]
    overlays = [option for name in names for option in ("--params", str(ROOT / "params" / f"{name}.yaml"))]
    assert reproduce.main(["--dry-run", *overlays]) == 0
    shown = capsys.readouterr().out
    assert f"name: {environment}" in shown and "model: smollm2-135m, 134,515,008 parameters" in shown
    episodes = 40 * 4 * 8
    assert f"train_policy: {episodes:,} episodes" in shown
