"""Params files: all that ship are valid, and every mistake is named with its key, value and remedy."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pytest
import yaml

from skillpress.core import moved
from skillpress.core.errors import ParamsError, UserError
from skillpress.core.moved import with_present_keys
from skillpress.experiment.layers import assigned_layers, file_layer
from skillpress.experiment.params import check_params, load_params, merge, merged, read_yaml
from skillpress.training.loop import parameters
from skillpress.training.loop.parameters import LoraParameters

ROOT = Path(__file__).parents[3]
DEFAULT = ROOT / "params.yaml"
PAPER = sorted((ROOT / "params").glob("paper_*.yaml"))
OVERLAYS = sorted((ROOT / "params").glob("*.yaml"))


def leaves(values: dict[str, object]) -> int:
    return sum(leaves(value) if isinstance(value, dict) else 1 for value in values.values())


def test_the_default_experiment_has_fewer_than_90_keys() -> None:
    assert leaves(read_yaml(DEFAULT)) < 90


@pytest.mark.parametrize("overlay", OVERLAYS, ids=lambda path: path.stem)
def test_every_overlay_that_ships_is_valid_and_changes_something(overlay: Path) -> None:
    changed = load_params(DEFAULT, overlay) != load_params(DEFAULT)
    assert changed or overlay.stem == "segcost"  # the default experiment is the paper's method


@pytest.mark.parametrize("overlay", OVERLAYS, ids=lambda path: path.stem)
def test_lambda_is_in_the_usual_proportion_to_the_success_whatever_that_is_worth(overlay: Path) -> None:
    """An overlay that changes the scale of rewards changes the penalty with it."""
    reward = load_params(DEFAULT, overlay).reward
    assert reward.shaping_weight == reward.success


@pytest.mark.parametrize("overlay", PAPER, ids=lambda path: path.stem)
def test_every_value_of_a_papers_overlay_names_its_source(overlay: Path) -> None:
    lines = [line for line in overlay.read_text().splitlines() if line.strip() and not line.startswith("#")]
    values = [line for line in lines if not line.split("#")[0].rstrip().endswith(":")]
    assert [line for line in values if "#" not in line and "  name: " not in line] == []
    assert all(line.split("#")[1].strip() for line in values if "#" in line)


@pytest.mark.parametrize("environment", ["alfworld", "textworld_cooking"])
def test_the_papers_benchmarks_are_trained_alike(environment: str) -> None:
    params = load_params(DEFAULT, ROOT / "params" / f"paper_{environment}.yaml")
    countdown = load_params(DEFAULT, ROOT / "params" / "paper_countdown.yaml")
    assert (params.training, params.reward) == (countdown.training, countdown.reward)
    assert params.algorithm == countdown.algorithm


@pytest.mark.parametrize(
    ("overlay", "message"),
    [
        ("training: {stepz: 3}", "training.stepz: unknown key"),
        ("training: {steps: many}", "training.steps: is 'many'; Input should be a valid integer"),
        ("training: {steps: 3.5}", "training.steps: is 3.5; Input should be a valid integer"),
        ("engine: {name: turbo}", "engine: name is 'turbo'; allowed: local, vllm, server"),
        ("engine: {urls: [http://a:1]}", "engine.urls: unknown key"),
        ("engine: {name: vllm}", "engine.cache_gib: missing"),
        ("engine: {name: vllm, cache_gib: 0}", "engine.cache_gib: is 0; Input should be greater than 0"),
        (
            "engine: {name: server, urls: [], answer_seconds: 60}",
            "engine.urls: is []; List should have at least 1 item",
        ),
        (
            "engine: {name: server, urls: [a:8801], answer_seconds: 60}",
            "'a:8801' is not a server; allowed: http://HOST:PORT",
        ),
        (
            "engine: {name: server, urls: [http://a:1, http://a:1/], answer_seconds: 60}",
            "names a server twice",
        ),
        (
            "engine: {name: server, urls: ['http://a:1?token=b'], answer_seconds: 60}",
            "or a part behind '?' or '#', which would be recorded with the parameters",
        ),
        ("algorithm: {clip_low: 1.5}", "algorithm.clip_low: is 1.5; Input should be less than 1"),
        ("algorithm: {step_weight: 0.9}", "algorithm.step_weight: unknown key"),
        ("algorithm: {name: trpo}", "algorithm: name is 'trpo'; allowed: grpo, rloo, reinforce_pp"),
        ("algorithm: {name: rloo}", "algorithm.clip_low: missing"),
        (
            "algorithm: {select: {name: some}}",
            "algorithm.select: name is 'some'; allowed: none, ",
        ),
        ("algorithm: {select: {name: varied_groups}}", "algorithm.select.refills: missing"),
        ("algorithm: {select: {refills: 3}}", "algorithm.select.refills: unknown key"),
        (
            "algorithm: {select: {name: dynamic_sampling, discard: 1.0, refills: 0}}",
            "algorithm.select.discard: is 1.0; Input should be less than 1",
        ),
        (
            "algorithm: {name: reinforce_pp, discount: 1.0, kl_coefficient: 0.0, select: {name: none}}",
            "training.minibatches is 4, must be 1",
        ),
        ("training: {lag: -1}", "training.lag: is -1; Input should be greater than or equal to 0"),
        ("training: {replay: {groups: 4}}", "training.replay.staleness: missing"),
        (
            "{algorithm: {name: reinforce_pp, discount: 1.0, kl_coefficient: 0.0, select: {name: none}}, "
            "training: {minibatches: 1, replay: {groups: 4, staleness: 2}}}",
            "algorithm reinforce_pp does not correct for rollouts of older weights: training.replay must be "
            "null",
        ),
        (
            "training: {lag: 1, replay: {groups: 4, staleness: 1}}",
            "training.replay.staleness is 1: with training.lag 1 a group's weights are up to 2 steps old",
        ),
        (
            "training: {tasks_per_step: 8, lag: 1, replay: {groups: 9, staleness: 2}}",
            "training.replay.groups is 9, but at most 8 groups are young enough",
        ),
        (
            "{training: {lag: 1}, processes: 1, engine: {name: vllm, cache_gib: 1}}",
            "training.lag 1 plays while the learner updates, and engine vllm does not",
        ),
        (
            "training: {lag: 1, checkpoint_every: 1}",
            "training.lag 1 has nothing to play ahead with training.checkpoint_every 1",
        ),
        (
            "training: {lag: 4, checkpoint_every: 3}",
            "training.lag is 4, but nothing is played over a checkpoint, and training.checkpoint_every is 3: "
            "make lag at most 2, or checkpoint_every at least 5",
        ),
        (
            "{algorithm: {name: reinforce_pp, discount: 1.0, kl_coefficient: 0.0, select: {name: none}}, "
            "training: {lag: 1, minibatches: 1}}",
            "algorithm reinforce_pp learns from the policy that sampled and no other: training.lag is 1",
        ),
        ("training: {rollouts_per_task: 1}", "training.rollouts_per_task is 1, must be at least 2"),
        ("tasks: {unseen: 8}", "tasks.unseen is 8, must be 0: environment.unseen_numbers is 0; make it 5"),
        (
            "{tasks: {train: 64}, training: {probe: {every: 5, tasks: 65}}}",
            "training.probe.tasks is 65, must be at most tasks.train (64)",
        ),
        (
            "{environment: {unseen_numbers: 5}, tasks: {unseen: 8}, training: {probe: {every: 5, tasks: 9}}}",
            "training.probe.tasks is 9, must be at most tasks.unseen (8)",
        ),
        ("training: {probe: {every: 0, tasks: 1}}", "training.probe.every: is 0"),
        (
            "reward: {shaping: lenght}",
            "reward.shaping: is 'lenght'; allowed: none",
        ),
        ("skills: {search: magic}", "skills.search: is 'magic'; allowed: greedy, refined"),
        ("skills: {closure: suffixes}", "skills.closure: is 'suffixes'; allowed: none, prefixes"),
        (
            "skills: {corpus: all}",
            "skills.corpus: is 'all'; allowed: algorithm_1, buffer_and_batch, batch_accepts, each_task_once",
        ),
        ("skills: {corpus: decayed}", "skills: buffer is 256, must be 0 with corpus decayed"),
        ("skills: {corpus: batch_accepts, search: refined}", "skills.corpus batch_accepts is a rule for"),
        (
            "skills: {dictionaries: per_task}",
            "skills.dictionaries: is 'per_task'; allowed: shared, per_class",
        ),
        (
            "skills: {dictionaries: per_class, library: {retrieval: by_task, top_k: 2, every: 1, new: 1, "
            "teacher: null}}",
            "skills: dictionaries is 'per_class', must be shared with a library without a teacher",
        ),
        (
            "reward: {centred: true, shaping_credit: step}",
            "reward: centred is true, must be false with shaping_credit step",
        ),
        ("skills: {search: exact}", "skills.search exact may take a minute per dictionary"),
        (
            "policy: {parser: lenient}",
            "policy.parser is 'lenient', but policy.rendering 'compact' asks for answers that 'plain' reads",
        ),
        (
            "policy: {parser: strict}",
            "policy.parser: is 'strict'; allowed: rendering, plain, tagged, lenient",
        ),
        (
            "policy: {state_update: observations}",
            "'observations' writes notes, which policy.rendering 'compact' has no words for",
        ),
        (
            "policy: {state_update: notepad, model: smollm2-135m, rendering: text}",
            "'notepad' shows the environment's notepad, and countdown has none",
        ),
        (
            "policy: {state_update: summarize, model: smollm2-135m, rendering: text, history: 0}",
            "'summarize' sums up what prompts show: policy.history is 0, must be at least 1",
        ),
        (
            "policy: {state_update: summarize, model: smollm2-135m, rendering: text}",
            "no oracle demonstrates: imitation.demonstrations is 60000, must be 0",
        ),
        (
            "experience: {name: erl, distill: 0, kl: 0, retries: 1, reflection: own}",
            "experience: distill and kl are both 0: second attempts would teach nothing",
        ),
        (
            "experience: {name: erl, distill: 1, kl: 0, retries: 1, reflection: own}",
            "policy.knowledge_words is 0, must be at least 1 with policy.rendering compact",
        ),
        (
            "{experience: {name: erl, distill: 1, kl: 0, retries: 1, reflection: own}, "
            "policy: {rendering: text, model: smollm2-135m, knowledge_words: 4}}",
            "policy.knowledge_words is 4, must be 0: prompts of text need no room of words",
        ),
        (
            "policy: {knowledge_words: 4}",
            "policy.knowledge_words is 4, must be 0: nothing gives any knowledge",
        ),
        (
            "{experience: {name: erl, distill: 1, kl: 0, retries: 1, reflection: own}, skills: {library: "
            "{retrieval: by_task, top_k: 2, every: 1, new: 1, teacher: null}}, policy: {knowledge_words: 4}}",
            "experience erl teaches prompts without what the agent was given, and skills.library gives",
        ),
        ("experience: {name: dreams}", "experience: name is 'dreams'; allowed: none, erl"),
        ("experience: {name: erl, retries: 0}", "experience.retries: is 0; Input should be greater"),
        (
            "{policy: {state_update: concatenate}, imitation: {thoughts: found.parquet}}",
            "imitation.thoughts is 'found.parquet', must be null: its prompts hold nothing that the policy",
        ),
        (
            "policy: {domain_tokens: [markers]}",
            "policy.domain_tokens is ['markers'], must be []",
        ),
        (
            "policy: {domain_tokens: [markers, markers], model: smollm2-135m, rendering: text}",
            "must name each kind once",
        ),
        ("policy: {domain_tokens: [verbs]}", "policy.domain_tokens.0: is 'verbs'"),
        ("policy: {state_update: learned}", "policy.memory is null and policy.state_update 'learned'"),
        (
            "policy: {memory: {length: 1, alphabet: 2}}",
            "policy.memory is set and policy.state_update",
        ),
        (
            "policy: {state_update: learned, memory: {length: 1, alphabet: 1}}",
            "policy.memory.alphabet is 1, must be at least 2",
        ),
        (
            "policy: {state_update: learned, memory: {length: 4, alphabet: 2}}",
            "sampling.max_new_tokens is 4, must be more than policy.memory.length (4)",
        ),
        (
            "policy: {state_update: learned, memory: {length: 1, alphabet: 2}, parser: plain}",
            "policy.parser is 'plain', must be rendering",
        ),
        (
            "policy: {state_update: learned, memory: {length: 90, alphabet: 2}, model: smollm2-135m, "
            "rendering: text}",
            "policy.memory.alphabet is 2, must be 0 with policy.rendering 'text'",
        ),
        ("processes: 0", "processes: is 0; Input should be greater than or equal to 1"),
        ("processes: 3", "training.tasks_per_step 64 must be a multiple of processes (3)"),
        ("training: {processes: 2}", "training.processes: unknown key"),
        (
            "training: {lora: {rank: 0, alpha: 8}}",
            "training.lora.rank: is 0; Input should be greater than or equal to 1",
        ),
        ("training: {lora: {rank: 8}}", "training.lora.alpha: missing"),
        (
            "training: {warmup_steps: 150}",
            "training.warmup_steps is 150, must be less than training.steps (150): no step would have",
        ),
        ("imitation: {warmup_updates: -1}", "imitation.warmup_updates: is -1; Input should be greater than"),
        ("training: {lora: {rank: 8, alpha: 8, dropout: 0.1}}", "training.lora.dropout: unknown key"),
        ("training: {lora: true}", "training.lora: is True; Input should be a valid dictionary"),
        (
            "skills: {library: {retrieval: nearest, top_k: 4, every: 5, new: 2, teacher: null}}",
            "skills.library.retrieval: is 'nearest'; allowed: by_task, random, filler",
        ),
        ("skills: {library: {retrieval: by_task}}", "skills.library.top_k: missing"),
        (
            "skills: {library: {retrieval: by_task, top_k: 4, every: 5, new: 2, teacher: {name: server, "
            "url: 'http://127.0.0.1:8000/v1', model: '', key_variable: '', max_new_tokens: 500}}}",
            "teacher writes sentences, which policy.rendering 'compact' has no words for",
        ),
        ("evaluation: {votes: 4}", "evaluation.votes: is 4; must be odd"),
        ("policy: {width: 30}", "policy: width 30 must be a multiple of 2 x heads (4)"),
        (
            "policy: {attention: flash_attention_2}",
            "policy: attention is flash_attention_2, which computes in half types alone: dtype is float32",
        ),
        (
            "policy: {attention: blocked}",
            "policy: attention is blocked, which computes in half types alone: dtype is float32",
        ),
        ("environment: {name: chess}", "environment: name is 'chess'; allowed: "),
        ("environment: {name: countdown, depth: 3}", "environment.depth: unknown key"),
        ("environment: {min_numbers: 5}", "min_numbers"),
        ("colour: red", "colour: unknown key"),
        (
            "training: {learning_rate: .nan}",
            "training.learning_rate: is nan; Input should be a finite",
        ),
    ],
)
def test_a_mistake_is_refused_by_its_key(tmp_path: Path, overlay: str, message: str) -> None:
    path = tmp_path / "mistake.yaml"
    path.write_text(overlay)
    with pytest.raises(ParamsError) as caught:
        load_params(DEFAULT, path)
    assert message in str(caught.value) and "mistake.yaml" in str(caught.value)


def test_without_validation_tasks_no_best_checkpoint_can_be_found(tmp_path: Path) -> None:
    path = tmp_path / "best.yaml"
    path.write_text("tasks: {validation: 0}\ntraining: {keep: best}")
    with pytest.raises(ParamsError, match=r"training\.keep best needs tasks\.validation of at least 1"):
        load_params(DEFAULT, path)
    path.write_text("tasks: {validation: 0}")
    assert load_params(DEFAULT, path).tasks.validation == 0


def test_the_exact_search_is_for_a_single_dictionary(tmp_path: Path) -> None:
    path = tmp_path / "exact.yaml"
    path.write_text("skills: {search: exact}\ntraining: {steps: 0}")
    assert load_params(DEFAULT, path).skills.search == "exact"


def test_all_mistakes_are_listed_at_once(tmp_path: Path) -> None:
    path = tmp_path / "mistakes.yaml"
    path.write_text("seed: -1\ntraining: {stepz: 3}\nalgorithm: {clip_low: 2.0}")
    with pytest.raises(ParamsError) as caught:
        load_params(DEFAULT, path)
    assert len(str(caught.value).splitlines()) == 4


def test_what_no_file_can_hold_is_refused_wherever_it_stands(tmp_path: Path) -> None:
    path = tmp_path / "own.yaml"
    for values, said in (
        ("{a: 1" + "0" * 400 + "}", r"environment\.kwargs\.a: is 1000.* \.\.\. 0+; must be between"),
        ("{a: [.inf]}", r"environment\.kwargs\.a\.0: is inf; must be a finite number"),
        ("{a: {1: x, b: y}}", r"environment\.kwargs\.a\.1: the key 1 is no text; write it in quotes"),
        ('{a: "\\ud800"}', r"environment\.kwargs\.a: is '\\ud800'; must not hold half a surrogate pair"),
    ):
        path.write_text(f"environment: {{kwargs: {values}}}")
        with pytest.raises(ParamsError, match=said):
            load_params(DEFAULT, ROOT / "params" / "wordle_smoke.yaml", path)


def test_a_value_of_any_length_is_told_in_a_line(tmp_path: Path) -> None:
    path = tmp_path / "long.yaml"
    path.write_text(f"seed: {'9' * 4000}\ntraining: {{learning_rate: {'x' * 4000}}}")
    with pytest.raises(ParamsError) as caught:
        load_params(DEFAULT, path)
    assert max(map(len, str(caught.value).splitlines()[1:])) < 400


def test_a_missing_key_a_missing_file_and_broken_yaml_are_refused(tmp_path: Path) -> None:
    values = yaml.safe_load(DEFAULT.read_text())
    del values["algorithm"]["clip_high"]
    path = tmp_path / "params.yaml"
    path.write_text(yaml.safe_dump(values))
    with pytest.raises(ParamsError, match=r"algorithm\.clip_high: missing"):
        load_params(path)
    with pytest.raises(ParamsError, match=r"nowhere\.yaml: cannot be read"):
        load_params(tmp_path / "nowhere.yaml")
    path.write_text("seed: [")
    with pytest.raises(ParamsError, match=r"params\.yaml, line 1, column 8: not YAML"):
        load_params(path)
    path.write_text("seed: 1e-3\nsede: 1")
    with pytest.raises(ParamsError, match=r"sede: unknown key; did you mean 'seed'\?"):
        load_params(path)
    path.write_text("- seed")
    with pytest.raises(ParamsError, match="must hold sections of parameters, holds list"):
        load_params(path)


def test_a_former_key_is_the_same_parameter_in_files_and_assignments_and_one_note_tells_the_present_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    moved._tell.cache_clear()
    (tmp_path / "overlay.yaml").write_text("reward: {efficiency: 3.0}\n")
    params = load_params(DEFAULT, tmp_path / "overlay.yaml")
    said = "reward.efficiency: is now called reward.shaping_weight; rename it"
    assert capsys.readouterr().err.startswith(said)
    assert params == check_params(merge(read_yaml(DEFAULT), {"reward": {"shaping_weight": 3.0}}), "test")
    layers = [file_layer(DEFAULT), *assigned_layers(["reward.efficiency=3.0"])]
    assert capsys.readouterr().err == ""  # it was said
    assert check_params(merged(layers), "test", layers) == params
    with pytest.raises(ParamsError, match=r"--set reward\.shaping_weight=1: --set reward\.efficiency=1 sets"):
        assigned_layers(["reward.efficiency=1", "reward.shaping_weight=1"])
    (tmp_path / "overlay.yaml").write_text("reward: {efficiency: 3.0, shaping_weight: 3.0}\n")
    with pytest.raises(ParamsError, match=r"overlay\.yaml: .* are the same parameter; remove reward"):
        load_params(DEFAULT, tmp_path / "overlay.yaml")


def test_what_isolates_is_read_by_its_former_key_and_another_environments_walls_are_its_own() -> None:
    sections = [{"walls": "gvisor"}, {"isolation": "gvisor"}, {"walls": 2}]
    found = [with_present_keys({"environment": section}, "test")["environment"] for section in sections]
    assert found == [{"isolation": "gvisor"}, {"isolation": "gvisor"}, {"walls": 2}]


def test_overlays_merge_key_by_key_and_the_last_wins() -> None:
    base = {"a": {"x": 1, "y": 2}, "b": 3}
    assert merge(base, {"a": {"y": 5}}) == {"a": {"x": 1, "y": 5}, "b": 3}
    assert base == {"a": {"x": 1, "y": 2}, "b": 3}


def test_a_reward_weighs_whatever_a_programs_verifier_measures(tmp_path: Path) -> None:
    overlay = tmp_path / "overlay.yaml"
    section = {
        "run": "lab:play",
        "tasks": "t.jsonl",
        "verify": "lab:verify",
        "seconds": 60,
        "isolation": "none",
    }
    values = {
        "environment": {"name": "program", "max_steps": 5, **section},
        "policy": {"model": "folder", "rendering": "requests"},
        "imitation": {"demonstrations": 0},
        "reward": {"measures": {"lines_changed": {"weight": -0.1, "credit": "trajectory"}}},
    }
    overlay.write_text(yaml.safe_dump(values))
    assert load_params(DEFAULT, overlay).reward.measures["lines_changed"].weight == -0.1
    overlay.write_text(yaml.safe_dump({"reward": values["reward"]}))
    with pytest.raises(ParamsError, match="'lines_changed' is nothing that countdown measures"):
        load_params(DEFAULT, overlay)


def test_an_overlay_of_another_environment_keeps_none_of_the_keys_below_it() -> None:
    base = {"environment": {"name": "countdown", "max_steps": 30, "max_target": 999}}
    other = {"environment": {"name": "other", "max_steps": 50}}
    assert merge(base, other) == other
    assert merge(merge(base, other), {"environment": {"max_steps": 9}}) == {
        "environment": {"name": "other", "max_steps": 9}
    }


@pytest.mark.parametrize("overlay", [{"max_steps": 9}, {"name": "countdown", "max_steps": 9}])
def test_an_overlay_of_the_same_environment_changes_single_keys(overlay: dict[str, object]) -> None:
    base = {"environment": {"name": "countdown", "max_steps": 30, "max_target": 999}}
    expected = {"environment": {"name": "countdown", "max_steps": 9, "max_target": 999}}
    assert merge(base, {"environment": overlay}) == expected


def test_an_overlay_of_another_algorithm_or_selection_replaces_its_section_whole() -> None:
    base = {"algorithm": {"name": "grpo", "scale": "std", "select": {"name": "varied_groups", "refills": 3}}}
    rloo = {"algorithm": {"name": "rloo", "select": {"name": "none"}}}
    assert merge(base, rloo) == rloo
    drawn = {"algorithm": {"select": {"name": "dynamic_sampling", "discard": 0.5, "refills": 2}}}
    assert merge(base, drawn)["algorithm"] == {"name": "grpo", "scale": "std", **drawn["algorithm"]}


def test_parameters_are_checked_without_torch() -> None:
    """A mistake in params.yaml is reported within a second, whatever algorithm it names."""
    program = (
        "import sys; from skillpress.experiment.params import load_params; "
        "[load_params('params.yaml', f'params/{name}.yaml') for name in sys.argv[1:]]; "
        "sys.exit('torch' in sys.modules)"
    )
    names = ["rloo", "reinforce_pp", "ppo", "gspo", "cispo", "varied_groups", "dynamic_sampling"]
    done = subprocess.run([sys.executable, "-c", program, *names], cwd=ROOT, check=False)
    assert done.returncode == 0


def test_lora_without_peft_is_refused_with_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(package: str) -> str:
        raise PackageNotFoundError(package)

    monkeypatch.setattr(parameters, "version", missing)
    with pytest.raises(UserError, match=r"training\.lora: is set, but .* peft is not installed.*\[lora\]"):
        LoraParameters(rank=4, alpha=8).libraries()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("training:\n  steps: 4\n  stepz: 5\n", r"training\.stepz: unknown key.*\(mine\.yaml, line 3\)"),
        ("\nsteps: 4\n", r"steps: unknown key; did you mean training\.steps\?.*\(mine\.yaml, line 2\)"),
        ("training: {clip_low: 1}\n", r"did you mean algorithm\.clip_low\?.*\(mine\.yaml, line 1\)"),
        ("training.steps: 4\n", r"write steps below training, .* \(mine\.yaml, line 1\)"),
        ("training: {seed: 3}\n", r"Or seed\? Write it at the top level"),
        ("training: {zzz: 3}\n", r"unknown key; remove it or correct its spelling \(mine\.yaml, line 1\)"),
        ("temperature: 1\n", r"did you mean sampling\.temperature or evaluation\.temperature\?"),
        ("\ntraining:\n  betas:\n  - 0.9\n  - 2\n", r"training\.betas\.1: is 2.*\(mine\.yaml, line 5\)"),
        ("seed: 1\n\nengine:\n  name: server\n", r"engine\.urls: missing.*\(mine\.yaml, line 3\)"),
        ("policy:\n  width: .inf\n", r"policy\.width: .*\(mine\.yaml, line 2\)"),
        (
            "training:\n  lag: 9\n  checkpoint_every: 5\n",
            r"\(training\.lag: mine\.yaml, line 2; training\.checkpoint_every: mine\.yaml, line 3\)",
        ),
    ],
)
def test_a_mistake_names_the_file_and_the_line_that_hold_its_value(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.yaml").write_text(text)
    (tmp_path / "other.yaml").write_text("reward: {shaping: none}\n")
    for overlays in (("mine.yaml", "other.yaml"), ("other.yaml", "mine.yaml")):
        with pytest.raises(ParamsError, match=said):
            load_params(DEFAULT, *overlays)


def test_of_several_files_that_give_a_value_the_last_is_named(tmp_path: Path) -> None:
    first, last = tmp_path / "first.yaml", tmp_path / "last.yaml"
    first.write_text("training: {steps: 3}\n")
    last.write_text("training:\n\n  steps: many\n")
    with pytest.raises(ParamsError, match=r"training\.steps: is 'many'.*\(.*last\.yaml, line 3\)"):
        load_params(DEFAULT, first, last)


def test_an_assignment_is_yaml_over_all_files_and_is_named_in_its_mistake() -> None:
    layers = [file_layer(DEFAULT), *assigned_layers(["training.learning_rate=1e-4", "skills.library=null"])]
    assert check_params(merged(layers), "test", layers).training.learning_rate == 0.0001
    wrong = [file_layer(DEFAULT), *assigned_layers(["training.steps=many"])]
    with pytest.raises(ParamsError, match=r"steps: is 'many'.*\(--set training\.steps=many\)"):
        check_params(merged(wrong), "test", wrong)
    with pytest.raises(ParamsError, match=r"--set seed=2: --set seed=1 sets seed too"):
        assigned_layers(["seed=1", "seed=2"])
    for text in ("training.steps", "=3", "training..steps=3", "training. steps=3"):
        with pytest.raises(ParamsError, match=r"must be key=value"):
            assigned_layers([text])
