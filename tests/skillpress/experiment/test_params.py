"""Every mistake in a params file is named with its key, value and remedy."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from skillpress.core.errors import ParamsError
from skillpress.experiment.params import load_params

ROOT = Path(__file__).parents[3]
DEFAULT = ROOT / "params.yaml"


@pytest.mark.parametrize(
    ("overlay", "message"),
    [
        ("training: {stepz: 3}", "training.stepz: unknown key"),
        ("training: {steps: many}", "training.steps: is 'many'; Input should be a valid integer"),
        ("training: {steps: 3.5}", "training.steps: is 3.5; Input should be a valid integer"),
        ("engine: {name: turbo}", "engine: name is 'turbo'; allowed: local, vllm, server"),
        ("engine: {urls: [http://a:1]}", "engine.urls: unknown key"),
        ("engine: {name: vllm}", "engine.cache_gib: missing"),
        ("environment: {name: shop, catalogue: 9}", "environment.max_steps: missing; the environment's page"),
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
        ("workers: {urls: ['cpu7:8700']}", "'cpu7:8700' is not a server; allowed: http://HOST:PORT"),
        ("workers: {urls: ['http://me:secret@cpu7']}", "holds a password"),
        (
            "workers: {urls: ['http://cpu7:8700']}",
            "workers.urls names 1 machines, must be []: a step of countdown takes less time than a message",
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
            "training.lag is 1, but engine vllm cannot sample while the learner updates",
        ),
        (
            "training: {lag: 1, checkpoint_every: 1}",
            "training.checkpoint_every is 1, must be at least 2 with training.lag 1",
        ),
        (
            "training: {lag: 4, checkpoint_every: 3}",
            "training.lag is 4, must be smaller than training.checkpoint_every (3), because rollouts cannot "
            "cross a checkpoint: make lag at most 2, or checkpoint_every at least 5",
        ),
        (
            "{algorithm: {name: reinforce_pp, discount: 1.0, kl_coefficient: 0.0, select: {name: none}}, "
            "training: {lag: 1, minibatches: 1}}",
            "algorithm reinforce_pp learns only from the policy that sampled: training.lag is 1",
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
            "tasks: {keep: {at_least: 0.8, at_most: 0.2}}",
            "tasks.keep: at_least is 0.8 and at_most 0.2: no pass rate lies between them",
        ),
        ("tasks: {keep: {at_least: 0.2}}", "tasks.keep.at_most: missing"),
        (
            "{tasks: {keep: {at_least: 0.6, at_most: 0.9}}, rollouts: {per_task: 2}}",
            "tasks.keep is 0.6 to 0.9 and rollouts.per_task 2, so the only pass rates are multiples of 1/2: "
            "no training task would be left; raise rollouts.per_task",
        ),
        ("rollouts: {tasks: some}", "rollouts.tasks"),
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
        ("skills: {corpus: batch_accepts, search: refined}", "skills.corpus batch_accepts needs"),
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
            "'observations' writes notes, which policy.rendering 'compact' cannot show",
        ),
        (
            "policy: {state_update: notepad, model: smollm2-135m, rendering: text}",
            "'notepad' shows the environment's notepad, and countdown has none",
        ),
        (
            "policy: {state_update: summarize, model: smollm2-135m, rendering: text, history: 0}",
            "policy.history is 0, must be at least 1: policy.state_update 'summarize' summarizes the turns",
        ),
        (
            "policy: {state_update: summarize, model: smollm2-135m, rendering: text}",
            "imitation.demonstrations is 60000, must be 0: policy.state_update 'summarize' asks",
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
            "policy.knowledge_words is 4, must be 0: prompts of text reserve no words",
        ),
        (
            "policy: {knowledge_words: 4}",
            "policy.knowledge_words is 4, must be 0: nothing adds knowledge to prompts",
        ),
        (
            "{experience: {name: erl, distill: 1, kl: 0, retries: 1, reflection: own}, skills: {library: "
            "{retrieval: by_task, top_k: 2, every: 1, new: 1, teacher: null}}, policy: {knowledge_words: 4}}",
            "experience erl and skills.library cannot be combined: it trains on prompts without added",
        ),
        (
            "environment: {skills: mine}",
            "environment.skills gives sentences, which policy.rendering 'compact' cannot show",
        ),
        (
            "{experience: {name: erl, distill: 1, kl: 0, retries: 1, reflection: own}, policy: "
            "{rendering: text, model: smollm2-135m}, environment: {skills: mine}}",
            "experience erl and environment.skills cannot be combined: it trains on prompts without added",
        ),
        ("experience: {name: dreams}", "experience: name is 'dreams'; allowed: none, erl"),
        ("experience: {name: erl, retries: 0}", "experience.retries: is 0; Input should be greater"),
        (
            "{policy: {state_update: concatenate}, imitation: {thoughts: found.parquet}}",
            "imitation.thoughts is 'found.parquet', must be null: its prompts cannot have the policy",
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
        ("policy: {state_update: learned}", "policy.memory is null, but policy.state_update is 'learned'"),
        (
            "policy: {memory: {length: 1, alphabet: 2}}",
            "policy.memory is set, but policy.state_update",
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
        (
            "policy: {state_update: store}",
            "policy.store is null, but policy.state_update is 'store': set it",
        ),
        (
            "policy: {state_update: store, store: {shown: 2, length: 9}}",
            "policy.state_update 'store' shows notes, which policy.rendering 'compact' of countdown cannot",
        ),
        (
            "policy: {state_update: store, model: smollm2-135m, rendering: text, parser: json, "
            "store: {shown: 2, length: 90, writes: [facts]}}",
            "policy.parser is 'json', but facts are written in <think>",
        ),
        (
            "policy: {state_update: store, model: smollm2-135m, rendering: text, "
            "store: {shown: 2, length: 90, writes: [summaries]}}",
            "must be 0: policy.store.writes 'summaries' asks the policy for summaries, which no oracle",
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
            "skills: {library: {retrieval: filler, top_k: 4, every: 5, new: 2, teacher: null, folder: mine}}",
            "skills.library.folder gives sentences, which policy.rendering 'compact' cannot show; use",
        ),
        (
            "skills: {library: {retrieval: by_task, top_k: 4, every: 5, new: 2, teacher: {name: server, "
            "url: 'http://127.0.0.1:8000/v1', model: '', key_variable: '', max_new_tokens: 500}}}",
            "teacher gives sentences, which policy.rendering 'compact' cannot show",
        ),
        ("evaluation: {votes: 4}", "evaluation.votes: is 4; must be odd"),
        ("policy: {width: 30}", "policy: width 30 must be a multiple of 2 x heads (4)"),
        (
            "policy: {attention: flash_attention_2}",
            "policy: attention is flash_attention_2, which supports only half types, but dtype is float32",
        ),
        (
            "policy: {attention: blocked}",
            "policy: attention is blocked, which supports only half types, but dtype is float32",
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
    with pytest.raises(ParamsError, match="holds list, must hold sections of parameters"):
        load_params(path)


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
    with pytest.raises(ParamsError, match="'lines_changed' is not measured by countdown"):
        load_params(DEFAULT, overlay)
