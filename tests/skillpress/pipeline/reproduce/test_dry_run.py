"""A dry run: the resolved experiment, its sizes and memory, and times only for given rates."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch
from transformers import AutoModelForCausalLM, LlamaConfig, Qwen2Config, Qwen3Config

from skillpress.core.registry import ENGINES
from skillpress.core.sections import ByName
from skillpress.experiment.estimate import memory_by_phase, training_memory
from skillpress.experiment.model_shapes import KNOWN_SHAPES, ModelShape
from skillpress.experiment.params import Params, load_params
from skillpress.experiment.work import work
from skillpress.learn.training.learner import read_configuration
from skillpress.learn.training.parameters import LoraParameters
from skillpress.models.engines.local.engine import CACHE_BYTES
from skillpress.pipeline import whole_run
from skillpress.pipeline.reproduce import __main__ as reproduce
from skillpress.pipeline.reproduce import dry_run
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
    parts = ("learner: weights", "learner: gradients", "learner: AdamW moments")
    assert more == dict.fromkeys(parts, 4 * (576 + 3 + 1))


def paper(environment: str) -> Params:
    return load_params(ROOT / "params.yaml", ROOT / "params" / f"paper_{environment}.yaml")


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


def test_work_is_counted_in_full_episodes() -> None:
    """Computed by hand: ALFWorld, 300 steps of 16 x 8 episodes of 50 steps; SC@7 on 274 games."""
    parts = work(paper("alfworld"))
    training, evaluation = parts["train_policy"], parts["evaluate_policy"]
    assert training.episodes == 38_400 and training.environment_steps == 1_920_000
    assert training.prompt_tokens == 1_920_000 * 2048 and training.sampled_tokens == 1_920_000 * 512
    assert evaluation.episodes == 1918 and evaluation.environment_steps == 95_900
    assert parts["play_floors: explorer"].tokens == 0


def test_the_best_step_costs_a_pass_over_the_validation_tasks_for_every_checkpoint() -> None:
    params = paper("alfworld")
    assert work(params)["train_policy: validation"].episodes == 0
    section = params.training.model_copy(update={"keep": "best", "steps": 25, "checkpoint_every": 10})
    validation = work(params.model_copy(update={"training": section}))["train_policy: validation"]
    assert validation.episodes == 3 * params.tasks.validation, "after steps 10, 20 and 25"


def test_what_is_replayed_is_learned_from_and_not_played(capsys: pytest.CaptureFixture[str]) -> None:
    """Computed by hand. After the first step 16 groups of 8 episodes are replayed, each of 30 steps of 2048
    prompt and 4 sampled tokens; 48 groups are played in each of 150 steps. Two processes share the work."""
    options = ["--params", str(ROOT / "params" / "replay.yaml"), "--training-rate", "1000"]
    assert reproduce.main(["--dry-run", *options]) == 0
    shown, episode = capsys.readouterr().out, 30 * (2048 + 4)
    again, played = 149 * 16 * 8, 150 * 48 * 8
    assert f"learned from again, not played: {again:,} episodes, {again * episode:.3g} tokens" in shown
    assert f"train_policy: {played:,} episodes, {played * 30:,} environment steps" in shown
    assert f"training: {(again + played) * episode / 1000 / 2 / 3600:.1f} hours" in shown


def test_zero_stages_share_what_they_say() -> None:
    """1000 parameters on two processes: 2 bytes of weight, 2 and 4 of gradient, 4 of copy, 8 of moments."""
    shape = ModelShape(
        1000, layers=1, hidden=8, kv_heads=1, head_size=8, vocabulary=10, heads=1, intermediate=8
    )
    params = paper("alfworld")
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
    state = sum(size for part, size in parts.items() if part.startswith(("learner: ", "engine: weights")))
    assert gpu["updating"] == state + sum(size for part, size in parts.items() if part.startswith("batch: "))
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
    parts = with_engine(name="vllm", cache_gib=2.0)
    assert parts["engine: keys and values"] == 2 * 2**30
    whole = parts["engine: weights"] + parts["engine: keys and values"]
    awake, gpu = (memory_by_phase(parts, sleeps, on_gpu=True) for sleeps in (False, True))
    cpu = memory_by_phase(parts, sleeps=True, on_gpu=False)
    assert awake["updating"] - gpu["updating"] == parts["engine: weights"]
    assert cpu["updating"] - gpu["updating"] == whole + parts["reference: weights"]
    assert gpu["sampling"] == awake["sampling"]


def test_servers_take_nothing_of_the_learners_memory() -> None:
    parts = with_engine(name="server", urls=["http://a:1"], answer_seconds=60.0)
    assert parts["engine: weights"] == parts["engine: keys and values"] == 0


@pytest.mark.parametrize(
    ("environment", "episodes"),
    [
        ("alfworld", "38,400"),
        ("textworld_cooking", "38,400"),
        ("countdown", "38,400"),
        ("notebook_qa", "102,400"),
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
    assert "sampling: unknown without --sampling-rate" in shown


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


def test_time_comes_from_the_stated_rates_and_a_scratch_model_is_counted(
    capsys: pytest.CaptureFixture[str],
) -> None:
    options = [
        "--params",
        str(ROOT / "params" / "smoke.yaml"),
        "--sampling-rate",
        "1000",
        "--step-ms",
        "3600",
    ]
    assert reproduce.main(["--dry-run", *options]) == 0
    shown = capsys.readouterr().out
    steps = (16 * 2 + 4 * 4 * 4 + 3 * 2 * 32) * 30
    assert f"environment: {steps / 1000:.1f} hours" in shown
    assert "training: unknown without --training-rate" in shown
    assert "(built from the parameters)" in shown


def verdict_of(shown: str) -> list[str]:
    """The lines before the parameters."""
    return shown.partition("\n\n")[0].splitlines()


def test_the_verdict_comes_first_and_says_by_what_the_hours_are_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(whole_run, "TIMES", tmp_path / "seconds.jsonl")
    options = ["--dry-run", "--params", str(ROOT / "params" / "smoke.yaml")]
    assert reproduce.main(options) == 0
    fits, takes = verdict_of(capsys.readouterr().out)
    assert fits.startswith("fits this machine's ")
    assert takes.startswith(
        "takes an unknown time: give --step-ms, --training-rate, --sampling-rate, or --measured"
    )
    rates = ["--sampling-rate", "1000", "--step-ms", "10", "--training-rate", "500"]
    assert reproduce.main([*options, *rates]) == 0
    shown = capsys.readouterr().out
    assert re.fullmatch(r"takes \d+\.\d+ hours at most, by the stated rates", verdict_of(shown)[-1])
    values = load_params(ROOT / "params.yaml", ROOT / "params" / "smoke.yaml").model_dump(mode="json")
    for stage in whole_run.read_stages(ROOT / "dvc.yaml"):
        whole_run.remember(stage, values, 100.0)
    assert reproduce.main([*options, "--seed", "7"]) == 0, "another seed takes as long"
    took = f"takes {9 * 100 / 3600:.2f} hours, as its stages last did on this machine"
    assert verdict_of(capsys.readouterr().out)[-1] == took


def hours(shown: str) -> dict[str, float]:
    """The times in the output, by name."""
    lines = shown.partition("time, ")[2].splitlines()[1:]
    return {name.strip(): float(took.split()[0]) for name, took in (line.rsplit(": ", 1) for line in lines)}


def test_processes_share_the_time_and_passes_without_a_way_back_take_a_third(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The paper's ALFWorld has a reference policy, and the default experiment a start from demonstrations."""
    rates = ["--sampling-rate", "900", "--training-rate", "90", "--step-ms", "5"]
    found = {}
    for processes in (1, 8):
        (tmp_path / "overlay.yaml").write_text(
            f"{{processes: {processes}, imitation: {{demonstrations: 3000}}}}"
        )
        overlays = [ROOT / "params" / "paper_alfworld.yaml", tmp_path / "overlay.yaml"]
        assert (
            reproduce.main(["--dry-run", *rates, *(o for each in overlays for o in ("--params", str(each)))])
            == 0
        )
        found[processes] = hours(capsys.readouterr().out)
    one, eight = found[1], found[8]
    assert one.keys() == eight.keys() and len(one) == 7
    for name, took in one.items():
        assert eight[name] == pytest.approx(took / 8, abs=0.06), name
    assert one["scoring by the reference policy"] == pytest.approx(one["training"] / 3 / 4, abs=0.1)
    assert one["imitation"] == pytest.approx(2 * 3000 * 50 * 2560 / 90 / 3600, abs=0.1)
    assert one["demonstrations"] == pytest.approx(3000 * 50 * 0.005 / 3600, abs=0.06)
    assert one["one after the other"] == pytest.approx(
        sum(took for name, took in one.items() if name != "one after the other"), abs=0.5
    )


def test_servers_sample_for_all_processes_at_their_own_rate(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    took = {}
    for engine in ("local", "server"):
        (tmp_path / "overlay.yaml").write_text(
            "engine: {name: local}" if engine == "local"
            else "engine: {name: server, urls: ['http://a:1'], answer_seconds: 60.0}"
        )  # fmt: skip
        options = ["--params", str(tmp_path / "overlay.yaml"), "--sampling-rate", "1000"]
        assert reproduce.main(["--dry-run", *options]) == 0
        line = next(x for x in capsys.readouterr().out.splitlines() if x.startswith("  sampling: "))
        took[engine] = float(line.split()[1])
    assert took["server"] == pytest.approx(2 * took["local"], rel=0.01)


PAPER = ["--params", str(ROOT / "params" / "paper_alfworld.yaml")]
SERVERS = [*PAPER, "--params", str(ROOT / "params" / "servers.yaml")]
EIGHT = ["--devices", "8", "--device-memory"]


def test_what_does_not_fit_gpus_is_refused_with_the_two_changes_that_help_most(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert reproduce.main(["--dry-run", *PAPER, *EIGHT, "80"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("fits 8 devices of 80 GB: each of 8 processes takes at most 48.")
    assert reproduce.main(["--dry-run", *PAPER, *EIGHT, "40"]) == 2
    shown, refused = capsys.readouterr()
    assert shown.startswith("does not fit 8 devices of 40 GB: each of 8 processes may take 48.")
    changes = shown.partition("the changes that lower the peak most:\n")[2].splitlines()[:2]
    assert changes[0].startswith("  training.gradient_checkpointing: true: 18.")
    assert changes[1].startswith("  training.microbatch_tokens: 4096: 30.")
    assert all("GB less; it would fit (an update takes " in change for change in changes)
    assert refused.startswith("refused: does not fit 8 devices of 40 GB: each of 8 processes may take 48.")


def test_a_machine_without_gpus_is_compared_and_never_refused(capsys: pytest.CaptureFixture[str]) -> None:
    if torch.cuda.is_available():
        pytest.skip("this machine has GPUs")
    assert reproduce.main(["--dry-run", "--params", str(ROOT / "params" / "paper_notebook_qa.yaml")]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("does not fit this machine's memory of ") and "division of" not in shown


def test_a_node_is_divided_between_processes_and_servers(capsys: pytest.CaptureFixture[str]) -> None:
    """Counted by hand: 2 bytes of 1,543,714,304 weights; 32 responses of 2560 tokens, 28 layers, 2 heads."""
    assert reproduce.main(["--dry-run", *SERVERS, *EIGHT, "80"]) == 0
    shown = capsys.readouterr().out
    assert "division of 8 devices of 80 GB, of which 72.0 GB each are counted on:\n" in shown
    assert "  GPUs 0 to 3: a training process each, with at most 48." in shown
    assert "    learner: weights 3.1, gradients 2.3, float32 copy 1.5, AdamW moments 3.1; batch: " in shown
    for number in range(4):
        assert (
            f"  GPU {4 + number}: the server http://127.0.0.1:{8801 + number}, with at most 5.4 GB" in shown
        )
    assert shown.count("weights 3.1, keys and values 2.3 GB: room for all of 32 responses at once") == 4
    assert "main memory: 12.3 GB for the reference's weights" in shown and "free" not in shown


def test_gpus_that_are_left_and_servers_elsewhere_are_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    overlay = tmp_path / "elsewhere.yaml"
    overlay.write_text(
        "processes: 4\nengine: {name: server, urls: ['http://10.0.0.5:1'], answer_seconds: 9.0}"
    )
    assert reproduce.main(["--dry-run", *PAPER, "--params", str(overlay), *EIGHT, "80"]) == 0
    shown = capsys.readouterr().out
    assert "  GPUs 4 to 7: free" in shown
    assert "the engine's servers are at other addresses, and take nothing here" in shown


def test_servers_can_be_spread_over_gpus_and_their_options_are_checked(
    capsys: pytest.CaptureFixture[str],
) -> None:
    spread = ["--server-gpus", "2", "--server-cache", "10"]
    assert reproduce.main(["--dry-run", *SERVERS, "--devices", "12", "--device-memory", "80", *spread]) == 0
    shown = capsys.readouterr().out
    assert "  GPUs 10 to 11: the server http://127.0.0.1:8804, with at most 12.3 GB on each" in shown
    assert reproduce.main(["--dry-run", *SERVERS, *EIGHT, "80", *spread]) == 2
    assert "each of 4 processes needs one, and 4 servers need 2 each" in capsys.readouterr().err
    assert reproduce.main(["--dry-run", *PAPER, *EIGHT, "80", *spread]) == 2
    assert "are for servers on the node, and the experiment has none" in capsys.readouterr().err
    assert reproduce.main(["--dry-run", *SERVERS, *EIGHT, "80", "--server-gpus", "5"]) == 2
    assert "the model's 12 attention heads cannot be spread evenly" in capsys.readouterr().err


def test_nodes_have_equal_shares_of_processes_and_gpus(capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        reproduce.main(["--dry-run", *PAPER, "--nodes", "2", "--devices", "4", "--device-memory", "80"]) == 0
    )
    shown = capsys.readouterr().out
    assert "division of 2 nodes of 4 x 80 GB" in shown and "  GPUs 0 to 3 of each node: a training" in shown


def test_hours_come_from_the_measured_steps_of_a_trial(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The first step counts kernels and is left out; 300 steps take the median of the others. Each of
    eight processes plays 10 environment steps a second, in all stages outside of training."""
    table = tmp_path / "training.csv"
    table.write_text(
        "step,seconds/rollout,seconds/shaping,seconds/update,environment_steps_per_second\n"
        "1,900,9,900,1\n2,50,1,30,10\n3,52,1,34,9\n4,54,1,38,11\n"
    )
    assert reproduce.main(["--dry-run", *PAPER, "--measured", str(table)]) == 0
    shown = capsys.readouterr().out
    assert f"time, by 3 measured steps of {table}:" in shown
    assert f"training: {300 * 87 / 3600:.1f} hours, 300 steps of 87.0 seconds (rollout 52.0, " in shown
    episodes = load_params(ROOT / "params.yaml").rollouts
    others = episodes.tasks * episodes.per_task * 50 + 2 * 95_900
    assert f"at most: {others / 80 / 3600:.1f} hours, {others:,} environment steps at 80.0 a second" in shown
    whole = (300 * 87 + others / 80) / 3600
    assert verdict_of(shown)[-1] == f"takes {whole:.1f} hours at most, by the measured steps of {table}"
    table.write_text("step,loss\n1,2\n")
    assert reproduce.main(["--dry-run", *PAPER, "--measured", str(table)]) == 2
    assert "it has no column seconds/rollout" in capsys.readouterr().err
    assert reproduce.main(["--dry-run", *PAPER, "--measured", str(tmp_path / "none.csv")]) == 2
    assert "none.csv cannot be read as a table" in capsys.readouterr().err


def test_the_disk_is_counted(capsys: pytest.CaptureFixture[str]) -> None:
    """Two models of 1.5 billion weights of two bytes; weights, copy and moments of them, twice."""
    assert reproduce.main(["--dry-run", "--params", str(ROOT / "params" / "paper_alfworld.yaml")]) == 0
    shown, count = capsys.readouterr().out, 1_543_714_304
    assert f"models: start and trained policy: {2 * 2 * count / 1e9:.2f} GB" in shown
    assert f"checkpoints: two while one replaces the other: {2 * 14 * count / 1e9:.2f} GB" in shown


@pytest.mark.parametrize("options", [["--devices", "8"], ["--device-memory", "80"]])
def test_devices_are_named_by_number_and_size(options: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert reproduce.main(["--dry-run", *options]) == 2
    assert "give both, such as --devices 8 --device-memory 80" in capsys.readouterr().err


def test_a_model_that_is_not_here_has_no_memory_estimate(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    overlay = tmp_path / "elsewhere.yaml"
    overlay.write_text("policy: {model: nobody/nothing, rendering: text}")
    assert reproduce.main(["--dry-run", "--params", str(overlay)]) == 0
    assert "memory: unknown, since the configuration of nobody/nothing" in capsys.readouterr().out


def test_wrong_parameters_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    overlay = tmp_path / "wrong.yaml"
    overlay.write_text("training: {stepz: 3}")
    assert reproduce.main(["--dry-run", "--params", str(overlay)]) == 2
    assert "training.stepz: unknown key" in capsys.readouterr().err
