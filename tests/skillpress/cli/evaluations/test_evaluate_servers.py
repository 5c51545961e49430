"""``skillpress evaluate --model URL``: what users see of a server's behaviour, and the cost of a restart."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from skillpress.cli.command import main
from skillpress.core.rollout_files import read_rollouts
from skillpress.pipeline import exit_codes
from skillpress.skills.library.files import read_skill_folders
from tests.support.rollouts.chat_server import chat_server
from tests.support.rollouts.manners import NEWER_LIMIT, error, message, refuses
from tests.support.skills.folders import EVIDENCE, skill_folder

FEW = ("--environment", "countdown", "--tasks", "4", "--votes", "3", "--set", "environment.max_steps=3")
TAGGED = ("--set", "policy.parser=tagged")


def evaluate(url: str, folder: Path, *options: str) -> int:
    return main(["evaluate", *FEW, *TAGGED, "--model", url, "--output", str(folder), *options])


def test_a_chat_model_reads_the_skills_that_the_environment_names(tmp_path: Path) -> None:
    skills = skill_folder(tmp_path / "skills", "find-things", f"The word is plover.{EVIDENCE}")
    given = ("--set", f"environment.skills={skills}")
    with chat_server() as (url, heard):
        assert evaluate(url, tmp_path / "with", *given) == evaluate(url, tmp_path / "without") == 0
    prompts = [body["messages"][0]["content"] for body in heard.bodies]
    told = [
        prompt.startswith("Skills learned in earlier tasks:\n- find-things: Use it for") for prompt in prompts
    ]
    steps = [len(e.steps) for e in read_rollouts(tmp_path / "with" / "rollouts.parquet")]
    assert sum(told) == sum(steps) and not any(told[sum(steps) :]), "every prompt of the first evaluation"
    assert all("plover" in prompt and "Evidence" not in prompt for prompt in prompts[: sum(steps)])
    record = json.loads((tmp_path / "with" / "evaluation.json").read_text())
    (skill,) = read_skill_folders(skills, "--skills")
    assert record["deciding"]["skills"] == {"find-things": skill.digest}
    (skills / "find-things" / "more.md").write_text("another skill")
    with chat_server() as (url, heard):
        assert evaluate(url, tmp_path / "with", *given) == exit_codes.USER_ERROR, (
            "the folder holds other skills"
        )
        assert heard.bodies == []


def test_a_server_that_fails_leaves_no_figure_and_exit_code_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with chat_server(manner=lambda number, body, good: {"error": {"message": "upstream"}}) as (url, _):
        assert evaluate(url, tmp_path / "out", "--deadline", "1.5") == exit_codes.USER_ERROR
    told = capsys.readouterr()
    assert "the last one: HTTP 200: upstream" in told.err and "Pass@1" not in told.out
    assert not (tmp_path / "out" / "evaluation.json").exists()


def test_answers_that_were_cut_off_refused_or_malformed_are_counted_apart_on_console_and_page(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def manner(number: int, body: dict, good: dict) -> object:
        said = {
            0: message(good, "length", content="<think>I shall"),
            1: message(good, content=None, refusal="I will not."),
            2: message(good, content="look"),
            3: error(400, code="context_length_exceeded"),
            4: message(good, "tool_calls", content=None, tool_calls=[{}]),
        }
        return said.get(number % 6, good)

    with chat_server(manner=manner) as (url, _):
        assert evaluate(url, tmp_path / "out") == 0
    found = json.loads((tmp_path / "out" / "evaluation.json").read_text())
    steps = [step for e in read_rollouts(tmp_path / "out" / "rollouts.parquet") for step in e.steps]
    reasons = [(step.invalid or "").partition("+")[0] for step in steps]
    named = {name: reasons.count(name) for name in ("cut_off", "refused", "tool_call", "prompt_too_long")}
    assert found["endings"] == {
        "answers": len(steps), **named, "malformed": reasons.count("missing_thought"), "not_served": 0,
    }  # fmt: skip
    assert min(named.values()) > 0 < reasons.count("missing_thought")
    told = [
        f"{named['cut_off']} cut off at 512 tokens (raise sampling.max_new_tokens)",
        f"{named['refused']} refused by the model or by a filter",
        f"{named['prompt_too_long']} not asked for, since the prompt does not fit",
        f"{reasons.count('missing_thought')} in a wrong format",
    ]
    console, page = capsys.readouterr().out, (tmp_path / "out" / "page.html").read_text()
    assert all(text in console and text in page for text in told)


def test_a_cost_that_the_server_does_not_count_is_called_unknown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with chat_server(manner=lambda number, body, good: good | {"usage": None}) as (url, heard):
        assert evaluate(url, tmp_path / "out") == 0
    asked = len(heard.bodies)
    assert f"{asked} requests at the server, the cost of {asked} of them unknown" in capsys.readouterr().out
    assert json.loads((tmp_path / "out" / "evaluation.json").read_text())["cost"]["uncounted"] == asked


def test_what_a_server_was_not_sent_is_said_on_console_and_page(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    refused = {"error": "Unrecognized request argument supplied: temperature"}
    with chat_server(manner=refuses("temperature", refused)) as (url, heard):
        assert evaluate(url, tmp_path / "out", "--omit", "seed, top_p") == 0
    assert all({"seed", "top_p"}.isdisjoint(body) for body in heard.bodies)
    said = "seed, temperature, top_p: the server&#39;s own values"
    assert said.replace("&#39;", "'") in capsys.readouterr().out
    page = (tmp_path / "out" / "page.html").read_text()
    assert said in page and "at most 512 tokens a response; prompts paper" in page
    assert "temperature 0.4" not in page, "it was not sent"
    found = json.loads((tmp_path / "out" / "evaluation.json").read_text())
    assert found["left_out"] == ["seed", "temperature", "top_p"]
    assert found["deciding"] == {"model": "toy", "omit": ["seed", "top_p"]}


def test_fields_of_ones_own_and_streams_are_in_the_record_and_identify_the_evaluation(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    own = ("--body", '{"reasoning_effort": "low"}', "--stream")
    with chat_server() as (url, heard):
        assert evaluate(url, tmp_path / "out", *own) == 0
        assert all(body["reasoning_effort"] == "low" and body["stream"] for body in heard.bodies)
        found = json.loads((tmp_path / "out" / "evaluation.json").read_text())
        assert found["deciding"] == {"model": "toy", "body": {"reasoning_effort": "low"}, "stream": True}
        assert "reasoning_effort" in (tmp_path / "out" / "page.html").read_text()
        capsys.readouterr()
        assert evaluate(url, tmp_path / "out") == exit_codes.USER_ERROR
    assert "body" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("{", "is not JSON"),
        ("[1]", "is not a JSON object"),
        ('{"a": NaN}', "is not JSON"),
        ('{"stream": true}', "stream is written by skillpress itself"),
    ],
)
def test_a_body_that_cannot_be_sent_is_refused_before_anything_is_asked(
    given: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with chat_server() as (url, heard):
        assert evaluate(url, tmp_path / "out", "--body", given) == exit_codes.USER_ERROR
    told = capsys.readouterr().err
    assert told.startswith("evaluate: --body: ") and said in told and not heard.bodies


def test_a_limit_under_its_newer_name_is_not_called_left_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with chat_server(manner=refuses("max_tokens", NEWER_LIMIT)) as (url, _):
        assert evaluate(url, tmp_path / "out") == 0
    assert "not sent" not in capsys.readouterr().out


@pytest.mark.parametrize("form", ["{url}", "{url}/", "{root}"])
def test_an_evaluation_goes_on_at_the_servers_next_address(form: str, tmp_path: Path) -> None:
    """The first server dies in the middle; its successor has another port and gets only the rest."""
    lost = (401, {}, {"error": "gone"})
    with chat_server(lambda number: lost if number > 20 else None) as (url, _):
        assert evaluate(url, tmp_path / "out", "--set", "sampling.slots=2") == exit_codes.USER_ERROR
    listed = {"object": "list", "data": [{"id": "toy"}]}
    with chat_server(listed=lambda path: listed if path == "/v1/models" else (404, {}, {})) as (moved, heard):
        assert moved != url
        address = form.format(url=moved, root=moved.removesuffix("/v1"))
        assert evaluate(address, tmp_path / "out") == 0
    steps = sum(len(episode.steps) for episode in read_rollouts(tmp_path / "out" / "rollouts.parquet"))
    assert 0 < len(heard.bodies) < steps - 10


def test_a_key_that_a_server_repeats_is_blotted_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MY_KEY", "sk-secret-12345\n")
    repeats = error(400, "bad request by sk-secret-12345")
    with chat_server(manner=lambda number, body, good: repeats) as (url, heard):
        assert evaluate(url, tmp_path / "out", "--key-variable", "MY_KEY") == exit_codes.USER_ERROR
    assert heard.keys[-1] == "Bearer sk-secret-12345"
    told = capsys.readouterr()
    assert "bad request by ***" in told.err and "sk-secret" not in told.err + told.out
