"""``skillpress evaluate``: every task exactly k times, in spite of interruptions and for any batching."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import polars as pl
import pytest
import yaml

from skillpress.cli.command import main
from skillpress.cli.evaluations.evaluate import evaluate as play_and_write
from skillpress.cli.evaluations.folder import SCHEMA, EvaluationFolder
from skillpress.cli.evaluations.language import LanguageModel
from skillpress.cli.evaluations.parameters import deciding, evaluation_params, experiment_of, tasks_of
from skillpress.core.errors import StorageError, UserError
from skillpress.core.rollout_files import read_rollouts
from skillpress.core.storage import write_json
from skillpress.core.tables import write_table
from skillpress.core.task_files import read_tasks
from skillpress.core.trajectory import Trajectory
from skillpress.experiment.layers import assigned_layers
from skillpress.experiment.params import check_params, merge, read_yaml
from skillpress.pipeline import exit_codes
from tests.support.rollouts.chat_server import chat_server

TEN = ("--environment", "countdown", "--tasks", "10", "--votes", "3")


def episodes_of(parts: Iterable[Path], scratch: Path) -> list[Trajectory]:
    """The episodes in an episode log."""
    steps = pl.concat([pl.read_parquet(part).drop("number") for part in parts])
    write_table(scratch / "steps.parquet", steps, "rollouts")
    return read_rollouts(scratch / "steps.parquet")


def played(folder: Path) -> list[Trajectory]:
    return read_rollouts(folder / "rollouts.parquet")


def test_a_policy_plays_every_task_exactly_k_times_and_everything_is_written(
    evaluate, policy: str, capsys
) -> None:
    folder = evaluate("mine", "--model", policy)
    tasks, episodes = read_tasks(folder / "tasks.parquet"), played(folder)
    assert Counter(episode.task_id for episode in episodes) == {task.task_id: 3 for task in tasks}
    assert {task.split for task in tasks} == {"test"} and len(tasks) == 10
    content = json.loads((folder / "evaluation.json").read_text())
    summary = content["parts"]["all"]["summary"]
    won = sum(episode.won for episode in episodes)
    assert summary["pass_at_1"]["mean"] == pytest.approx(won / 30)
    assert summary["pass_at_1"]["low"] <= won / 30 <= summary["pass_at_1"]["high"]
    assert {"iid", "ood"}.isdisjoint(content["parts"])
    assert content["parameters"]["policy"]["rendering"] == "compact"  # from the model's experiment
    assert content["parameters"]["environment"]["max_steps"] == 8
    assert content["parameters"]["engine"] == {"name": "local"}
    assert content["tokens"]["response"] == sum(len(s.response_ids) for e in episodes for s in e.steps)
    assert content["deciding"]["model"].startswith("folder ") and content["versions"]["torch"]
    assert yaml.safe_load((folder / "parameters.yaml").read_text())["parameters"]["evaluation"]["votes"] == 3
    page = (folder / "page.html").read_text()
    assert "models/policy on countdown" in page and "SC@3" in page and "Zero-reset" in page
    assert "10 test tasks of countdown (seed 0), each exactly 3x: 30 episodes, T = 8 steps at most" in page
    assert "95%, over tasks: other tasks of the same kind" in page and "training seed" not in page
    assert not (folder / "unfinished").exists()
    assert "10 tasks, each exactly 3x" in capsys.readouterr().out


def test_a_finished_evaluation_is_not_played_again_and_another_one_is_refused(
    evaluate, policy: str, capsys
) -> None:
    folder = evaluate("mine", "--model", policy)
    before = (folder / "rollouts.parquet").stat().st_mtime_ns
    begun = (folder / "parameters.yaml").read_text()
    (folder / "parameters.yaml").write_text(begun.replace("shaping_weight:", "efficiency:"))  # by version 0.1
    evaluate("mine", "--model", policy, "--set", "sampling.slots=3")  # does not affect episodes
    assert (folder / "rollouts.parquet").stat().st_mtime_ns == before
    other = ["evaluate", *TEN, "--model", policy, "--seed", "1", "--output", str(folder)]
    assert main(other) == exit_codes.USER_ERROR
    assert "holds an evaluation in which parameters.seed is 0 and not 1" in capsys.readouterr().err


def test_how_many_episodes_are_in_flight_changes_none_of_them_and_no_figure(evaluate, policy: str) -> None:
    wide = evaluate("wide", "--model", policy)
    narrow = evaluate("narrow", "--model", policy, "--set", "sampling.slots=4")
    assert [(e.task_id, e.rollout_index, e.actions) for e in played(wide)] == [
        (e.task_id, e.rollout_index, e.actions) for e in played(narrow)
    ]
    first, second = (json.loads((folder / "evaluation.json").read_text()) for folder in (wide, narrow))
    assert first["parts"] == second["parts"] and first["tokens"] == second["tokens"]
    assert first["parameters"]["sampling"]["slots"] != second["parameters"]["sampling"]["slots"]


def test_an_engine_without_exact_seeds_is_not_said_to_repeat(policy: str) -> None:
    said = {}
    for engine in ("{name: local}", "{name: server, urls: ['http://127.0.0.1:1'], answer_seconds: 1}"):
        params = evaluation_params("countdown", policy, assignments=[f"engine={engine}"])
        said[deciding(params)["engine"]["name"]] = LanguageModel(policy).repeats(params)
    assert "not on how many episodes are in flight" in said["local"]
    assert "the engine 'server' does not promise the same tokens" in said["server"]


def test_without_a_folder_an_evaluation_goes_under_results_by_its_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["evaluate", *TEN, "--agent", "explorer", "--set", "environment.max_steps=3"]) == 0
    assert EvaluationFolder(Path("results/evaluations/countdown-random-explorer")).finished


def test_an_attempt_that_ended_before_anything_was_played_does_not_hold_the_folder(
    evaluate, tmp_path: Path, capsys
) -> None:
    nobody = ["--model", "http://127.0.0.1:9/v1", "--name", "toy", "--output", str(tmp_path / "floor")]
    assert main(["evaluate", *TEN, *nobody]) == exit_codes.USER_ERROR
    assert "no server answers at http://127.0.0.1:9/v1" in capsys.readouterr().err
    folder = evaluate("floor", "--agent", "explorer", "--set", "environment.max_steps=3")
    assert yaml.safe_load((folder / "parameters.yaml").read_text())["agent"] == "explorer"


def test_a_file_in_the_place_of_the_folder_is_told(tmp_path: Path, capsys) -> None:
    (tmp_path / "out").write_text("")
    options = ["--agent", "explorer", "--output", str(tmp_path / "out")]
    assert main(["evaluate", *TEN, *options]) == exit_codes.USER_ERROR
    assert "out is a file; name another" in capsys.readouterr().err


def test_fewer_tasks_are_some_of_the_tasks(evaluate) -> None:
    ten = evaluate("ten", "--agent", "explorer")
    four = evaluate("four", "--agent", "explorer", "--tasks", "4")
    first, some = played(ten), played(four)
    assert {e.task_id for e in some} < {e.task_id for e in first}
    actions = {(e.task_id, e.rollout_index): e.actions for e in first}
    assert all(actions[e.task_id, e.rollout_index] == e.actions for e in some)


class Interrupted(LanguageModel):
    """A player that raises Ctrl-C after this many episodes."""

    after = 11

    def play(self, params, wanted, store, output, on_finished) -> None:
        seen = 0

        def count(more: int) -> None:
            nonlocal seen
            seen += more
            if seen >= self.after:
                raise KeyboardInterrupt
            on_finished(more)

        super().play(params, wanted, store, output, count)


def test_an_interrupted_evaluation_goes_on_and_ends_as_one_that_was_left_alone(
    evaluate, policy: str, tmp_path: Path
) -> None:
    whole = played(evaluate("whole", "--model", policy))
    options = {
        "tasks": {"test": 10},
        "evaluation": {"votes": 3},
        "sampling": {"slots": 4},
        "policy": {"model": policy},
    }
    params = evaluation_params("countdown", policy, options=options)
    folder = EvaluationFolder(tmp_path / "resumed")
    with pytest.raises(KeyboardInterrupt):
        play_and_write(folder, "language", Interrupted(policy), params)
    parts = folder.path.glob("unfinished/*/rank-0/episodes-*.parquet")
    saved = episodes_of(sorted(parts), tmp_path)
    assert len(saved) == 11 and not folder.finished
    resumed = played(evaluate("resumed", "--model", policy))
    assert [(e.task_id, e.rollout_index, e.actions) for e in resumed] == [
        (e.task_id, e.rollout_index, e.actions) for e in whole
    ]
    assert all(
        episode in resumed for episode in saved
    )  # equal to the log-probabilities, so they were not played again


@pytest.mark.slow
def test_alfworlds_games_are_told_apart_by_split(evaluate, alfworld_data: str) -> None:
    games = ("--environment", "alfworld", "--set", f"environment.data={alfworld_data}")
    folder = evaluate(
        "floor", "--agent", "explorer", *games, "--tasks", "8", "--set", "environment.max_steps=4"
    )
    parts = json.loads((folder / "evaluation.json").read_text())["parts"]
    assert list(parts) == ["all", "iid", "ood"]
    counts = {name: part["summary"]["pass_at_1"]["episodes"] for name, part in parts.items()}
    assert counts["iid"] + counts["ood"] == counts["all"] == 24 and min(counts.values()) > 0
    page = (folder / "page.html").read_text()
    assert "random explorer, IID tasks" in page and "random explorer, OOD tasks" in page


def test_a_chat_model_plays_through_http_and_pays_for_no_finished_episode_twice(
    evaluate, tmp_path: Path, capsys
) -> None:
    chat = ("--set", "environment.max_steps=4", "--set", "sampling.slots=4", "--deadline", "60")
    broken = (403, {}, {"error": {"message": "out of credit"}})
    with chat_server(lambda number: broken if number > 60 else None) as (url, heard):
        options = ["evaluate", *TEN, "--model", url, *chat, "--output", str(tmp_path / "chat")]
        assert main(options) == exit_codes.USER_ERROR
        error = capsys.readouterr().err
        assert "was refused with HTTP 403" in error and "out of credit" in error
        assert heard.busiest <= 4
    parts = (tmp_path / "chat").glob("unfinished/**/episodes-*.parquet")
    finished = episodes_of(parts, tmp_path)
    assert 0 < len(finished) < 30
    port = int(url.rpartition(":")[2].partition("/")[0])
    with chat_server(port=port) as (again, heard):
        assert again == url
        folder = evaluate("chat", "--model", url, *chat)
    episodes = played(folder)
    new = sum(len(e.steps) for e in episodes) - sum(len(e.steps) for e in finished)
    assert len(heard.bodies) == new
    content = json.loads((folder / "evaluation.json").read_text())
    assert content["cost"] == {
        "requests": 60 + new, "prompt_tokens": 10 * (60 + new), "response_tokens": 3 * (60 + new),
        "uncounted": 0,
    }  # fmt: skip
    assert content["tokens"] == {"prompt": 0, "response": 0}
    assert content["deciding"] == {"model": "toy"}
    assert content["parameters"]["policy"]["rendering"] == "paper"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--model", "nobody/nothing"), "neither a folder here nor in this machine's Hugging Face cache"),
        (("--model", "workspaces/of/nobody"), "'workspaces/of/nobody' is neither a folder here"),
        ((), "--model: is missing"),
        (("--agent", "language", "--model", "http://host/v1"), "but --model http://host/v1 is a URL"),
        (("--agent", "explorer", "--model", "m"), "--model: does not apply to --agent explorer"),
        (("--model", "m", "--key-variable", "K"), "--key-variable: does not apply to --agent language"),
        (("--model", "http://127.0.0.1:9/v1"), "no server answers at http://127.0.0.1:9/v1"),
        (("--model", "http://host/v1", "--deadline", "0"), "--deadline: is 0"),
        (("--model", "http://host/v1", "--deadline", "nan"), "--deadline: is nan"),
        (("--model", "http://host/v1", "--omit", "n"), "--omit: n is not a parameter that is sent"),
        (("--model", "m", "--omit", "seed"), "--omit: does not apply to --agent language"),
        (
            ("--model", "http://host/v1", "--name", "x", "--set", "policy.rendering=compact"),
            "policy.rendering",
        ),
        (
            ("--model", "http://host/v1", "--name", "x", "--set", "policy.state_update=concatenate"),
            "policy.state_update: is 'concatenate', which continues from the tokens of the last response",
        ),
        (("--agent", "explorer", "--votes", "2"), "must be odd"),
        (("--agent", "explorer", "--set", "sampling.slots"), "must be key=value"),
        (("--agent", "explorer", "--set", "sampling.slot=3"), "sampling.slot: unknown key"),
    ],
)
def test_a_mistake_is_told_before_anything_is_played(
    options: tuple[str, ...], message: str, tmp_path: Path, capsys
) -> None:
    code = main(["evaluate", *TEN[:4], *options, "--output", str(tmp_path / "out")])
    assert code == exit_codes.USER_ERROR
    assert message in capsys.readouterr().err
    assert not list(tmp_path.glob("out/*.parquet"))


def test_a_policy_from_scratch_is_not_shown_prose(policy: str, tmp_path: Path, capsys) -> None:
    prose = ("--set", "policy.rendering=text", "--output", str(tmp_path / "out"))
    assert main(["evaluate", *TEN, "--model", policy, *prose]) == exit_codes.USER_ERROR
    assert (
        "was made from scratch and knows the words of policy.rendering 'compact'" in capsys.readouterr().err
    )


def test_a_tokenizer_that_cannot_be_read_is_one_line(tmp_path: Path, capsys) -> None:
    for name, said in (("config.json", "{}"), ("tokenizer.json", '{"added_tokens": [], "model": {}}')):
        (tmp_path / name).write_text(said)
    options = ["evaluate", *TEN, "--model", str(tmp_path), "--set", "policy.rendering=text"]
    assert main([*options, "--output", str(tmp_path / "out")]) == exit_codes.USER_ERROR
    assert "has no tokenizer that can be loaded" in capsys.readouterr().err


def test_a_policy_is_not_evaluated_in_another_environment_by_its_own_parameters(
    policy: str, tmp_path: Path, capsys
) -> None:
    options = ["evaluate", "--environment", "alfworld", "--model", policy, "--output", str(tmp_path / "out")]
    assert main(options) == exit_codes.USER_ERROR
    assert "is 'alfworld', but" in capsys.readouterr().err


def test_parameters_come_from_the_models_experiment_or_else_from_the_papers_overlay(
    experiment: Path, policy: str, repository: Path
) -> None:
    assert experiment_of(policy) == (experiment / "params.yaml").resolve()
    assert experiment_of("Qwen/Qwen2.5-1.5B-Instruct") is None
    own = evaluation_params("countdown", policy, assignments=["evaluation.top_k=5"])
    assert own.policy.rendering == "compact" and own.evaluation.top_k == 5 and own.evaluation.votes == 7
    paper = evaluation_params("alfworld", "Qwen/Qwen2.5-1.5B-Instruct")
    assert (paper.tasks.test, paper.evaluation.votes, paper.evaluation.temperature) == (274, 7, 0.4)
    assert paper.processes == 1, "the overlay's eight are for its training"
    overlaid = evaluation_params("alfworld", "m", overlays=[repository / "params" / "alfworld.yaml"])
    assert overlaid.policy.rendering == "compact"
    assert evaluation_params("countdown", "m", assignments=["processes=3"]).processes == 3


def test_assignments_are_yaml_in_sections() -> None:
    layers = assigned_layers(["a.b=1", "a.c=x", "d=[1, 2]"])
    assert [layer.values for layer in layers] == [{"a": {"b": 1}}, {"a": {"c": "x"}}, {"d": [1, 2]}]


@pytest.mark.parametrize("content", ["", "3", "[1, 2]"])
def test_a_folder_with_a_file_of_something_else_is_refused(tmp_path: Path, content: str) -> None:
    folder = EvaluationFolder(tmp_path)
    folder.unfinished.mkdir()
    (folder.unfinished / "episode").touch()
    folder.parameters.write_text(content)
    with pytest.raises(UserError, match=r"parameters\.yaml is another program's file; name another folder"):
        folder.claim({"agent": "explorer"})
    assert folder.parameters.read_text() == content


@pytest.mark.parametrize("parameters", [None, [], {"policy": 3, "environment": {}}, {"policy": {}}])
def test_figures_without_their_parameters_are_damaged(tmp_path: Path, parameters: object) -> None:
    folder = EvaluationFolder(tmp_path)
    write_json(folder.record_file, {"schema": SCHEMA, "parameters": parameters})
    with pytest.raises(StorageError, match="damaged"):
        folder.tokenizer()


@pytest.mark.parametrize("own", ["shop", "workshop", "countdown", "program"])
def test_a_policys_evaluation_plays_tasks_that_its_training_did_not(
    tmp_path: Path, repository: Path, own: str
) -> None:
    (tmp_path / "tasks.jsonl").write_text("\n".join(f'{{"id": "{number}"}}' for number in range(90)))
    program = {"name": "program", "tasks": str(tmp_path / "tasks.jsonl"), "run": "json:dumps"}
    program |= {"verify": "json:loads", "calls": "plain", "max_calls": 2, "seconds": 9, "isolation": "none"}
    in_words = {"model": "smollm2-135m", "rendering": "requests", "context_tokens": 2048}
    named = {"program": {"environment": program, "policy": in_words, "imitation": {"demonstrations": 0}}}
    file = repository / "params" / f"{own}.yaml"
    overlay = named.get(own) or (read_yaml(file) if file.is_file() else {})
    values = merge(merge(read_yaml(repository / "params.yaml"), overlay), {"tasks": {"test": 20}})
    if own != "workshop":
        values["tasks"] |= {"train": 60, "validation": 5}
    (tmp_path / "params.yaml").write_text(yaml.safe_dump(values))
    experiment = check_params(values, "test")
    made = list(experiment.environment.make_tasks(experiment.tasks.make(), experiment.seed))
    (tmp_path / "named.yaml").write_text((tmp_path / "params.yaml").read_text())
    for model, overlays in ((tmp_path / "models" / "policy", ()), ("m", [tmp_path / "named.yaml"])):
        params = evaluation_params(own, str(model), overlays)
        assert tasks_of(params, "test") == [task for task in made if task.split == "test"]
    assert not {task.task_id for task in made if task.split == "train"} & {
        task.task_id for task in tasks_of(params, "test")
    }
